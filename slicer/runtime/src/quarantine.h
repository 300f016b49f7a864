/* quarantine.h - protection from errors of a prefetch thread. */
#ifndef QUARANTINE_H
#define QUARANTINE_H

#include "shared.h"

/* At the birth: gives up all rights except those needed to read what the program may read; hides the memory from
 * others; makes the process the first to be killed when memory runs out. True if all of it succeeded. */
bool quarantine_birth(void);
/* Turns memory that is shared with others into copies, and the life page into read-only memory. Limits memory and
 * core files. True if all of it succeeded. */
bool quarantine_process(struct shared *shared);

/* Faults end only the thread that causes them. For the process; then for each thread, which gets a stack for its
 * handler. */
void quarantine_faults(void);
bool quarantine_thread(void);

/* Installs the filter: from now on only the calls listed in filter.c. Writes to `report` (-1: none) are among them. */
bool quarantine_calls(int report);

#endif
