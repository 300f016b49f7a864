/* hold.h - reads of which it is not decided yet whether they are left to the kernel. */
#ifndef HOLD_H
#define HOLD_H

#include "queue.h"

/* With the lock held: puts a reading on hold, or leaves it to the kernel; releases the readings on hold, to the
 * end of the list. */
void hold_add(struct lane *lane, struct reading reading);
void hold_release(struct lane *lane);
/* With the lock held: enters a read that the thread makes for itself. When a stretch of them was all in order, and
 * where the program is: its calls; else 0. */
uint64_t hold_fetch(struct lane *lane, const struct reading *reading);

#endif
