/* birth.h - cloning the prefetch process. */
#ifndef BIRTH_H
#define BIRTH_H

#include <sys/types.h>

#include "shared.h"

/* Whether this process is one to clone: it has one thread, so that no lock can be held in the clone. */
bool birth_is_possible(void);

/* Has the calling thread hold the life lock until it ends; 0, or an errno value. */
int birth_hold_life(struct shared *shared);
/* Lets it go, where nobody was born. */
void birth_release_life(struct shared *shared);

/* Clones the prefetch process, which runs f(argc, argv) and watches the life lock; its number, or 0. */
pid_t birth(struct shared *shared, void (*f)(int, char **), int argc, char **argv);

#endif
