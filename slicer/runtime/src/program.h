/* program.h - what the computation thread's files know of each other. */
#ifndef PROGRAM_H
#define PROGRAM_H

#include "shared.h"

/* The memory shared with the prefetch process. NULL where there is none, in children of fork() and in
 * the prefetch process itself. */
struct shared *program_shared(void);

#endif
