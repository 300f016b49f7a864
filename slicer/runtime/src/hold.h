/* hold.h - reads for which it is undecided whether they are left to the kernel. */
#ifndef HOLD_H
#define HOLD_H

#include "queue.h"

/* With the lock held. hold_add() puts a reading on hold, or leaves it to the kernel; hold_release() moves the held
 * readings to the end of the list. */
void hold_add(struct lane *lane, struct reading reading);
void hold_release(struct lane *lane);
/* With the lock held: enters a read that the thread makes for itself. If a whole stretch of such reads was in order,
 * and the program has come as far, returns the number of its calls; else 0. */
uint64_t hold_fetch(struct lane *lane, const struct reading *reading);

#endif
