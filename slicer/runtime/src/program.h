/* program.h - the program's access to the memory that it shares with its prefetch process. */
#ifndef PROGRAM_H
#define PROGRAM_H

#include <sys/types.h>

#include "shared.h"

/* The memory shared with the prefetch process. NULL if there is none, in children of fork() and in the prefetch
 * process itself. */
struct shared *program_shared(void);
/* The same, for the last time: no later call of the program finds the memory. Also returns the prefetch process.
 * NULL if there is none, in a child that shares the program's memory (vfork), and the second time. */
struct shared *program_part(pid_t *prefetch);
/* True if there is a report to write, which takes some milliseconds. */
bool program_reports(void);

/* The anchor of the shared memory, not in use yet; NULL without memory. */
struct anchor;
struct anchor *program_make_anchor(struct shared *shared);
void program_drop_anchor(struct anchor *made);
/* Sets the anchor: the program has this prefetch process from now on. */
void program_anchor(struct anchor *made, pid_t prefetch, bool reports);
/* True if the program has, or had, a prefetch process. */
bool program_is_anchored(void);

/* True if this process may have a prefetch thread. */
bool program_is_wanted(void);

#endif
