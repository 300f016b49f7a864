/* program.h - the program's way to the memory that it shares with its prefetch process. */
#ifndef PROGRAM_H
#define PROGRAM_H

#include <sys/types.h>

#include "shared.h"

/* The memory shared with the prefetch process. NULL where there is none, in children of fork() and in
 * the prefetch process itself. */
struct shared *program_shared(void);
/* The same, for the last time: no call of the program's comes to it any more. And the prefetch process. NULL where there is none,
 * in a child that has the program's memory (vfork), and the second time. */
struct shared *program_part(pid_t *prefetch);
/* Whether there is to be a report, which takes some milliseconds. */
bool program_reports(void);

/* The way to it, not in use yet; NULL without memory. */
struct anchor;
struct anchor *program_make_anchor(struct shared *shared);
void program_drop_anchor(struct anchor *made);
/* From now on the program has this prefetch process. */
void program_anchor(struct anchor *made, pid_t prefetch, bool reports);
/* Whether it has, or had, one. */
bool program_is_anchored(void);

/* Whether this process is one to have a prefetch thread. */
bool program_is_wanted(void);

#endif
