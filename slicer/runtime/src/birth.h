/* birth.h - cloning the prefetch process. */
#ifndef BIRTH_H
#define BIRTH_H

#include <sys/types.h>

#include "shared.h"

/* True if this process can be cloned: it has one thread, so that no lock can be held in the clone. */
bool birth_is_possible(void);

/* The calling thread holds the life lock until it ends; returns 0 or an errno value. */
int birth_hold_life(struct shared *shared);
/* Releases the life lock, if no process was born. */
void birth_release_life(struct shared *shared);

/* Clones the prefetch process, which runs f(argc, argv) and watches the life lock; returns its process ID, or 0. */
pid_t birth(struct shared *shared, void (*f)(int, char **), int argc, char **argv);

#endif
