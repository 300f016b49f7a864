/* program.h - what the computation thread's files know of each other. */
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

/* Whether this process is one to have a prefetch thread. */
bool program_is_wanted(void);

#endif
