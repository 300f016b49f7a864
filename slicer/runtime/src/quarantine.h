/* quarantine.h - what keeps a prefetch thread from doing harm. */
#ifndef QUARANTINE_H
#define QUARANTINE_H

#include "shared.h"

/* At its birth: no rights but those by which it reads what the program may read; none of its memory shown to others; first
 * to go when memory runs out. Whether all that could be done. */
bool quarantine_birth(void);
/* Memory that is shared with others becomes a copy; the life page, read-only. Limits on memory and
 * core files. Whether all that could be done. */
bool quarantine_process(struct shared *shared);

/* Faults end the thread that makes them, and no other. For the process; then for each thread, which gets a
 * stack for its handler. */
void quarantine_faults(void);
bool quarantine_thread(void);

/* From now on, the filter: only what filter.c lists. Writes to `report` (-1: none) are on it. */
bool quarantine_calls(int report);

#endif
