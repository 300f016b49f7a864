/* quarantine.h - what keeps a prefetch thread from doing harm. */
#ifndef QUARANTINE_H
#define QUARANTINE_H

#include "shared.h"

/* Memory that is shared with others becomes a copy; the life page, read-only. Limits on memory and
 * core files; first to go when memory runs out; no way to more rights, nor to come before others on a processor. Whether all that could be done. */
bool quarantine_process(struct shared *shared);

/* Faults end the thread that makes them, and no other. For the process; then for each thread, which gets a
 * stack for its handler. */
void quarantine_faults(void);
bool quarantine_thread(void);

/* From now on, the filter: only what filter.c lists. Writes to `report` (-1: none) are on it. */
bool quarantine_calls(int report);

#endif
