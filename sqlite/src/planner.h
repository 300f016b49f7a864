/* The planner: the thread that works ahead of all walks.
 *
 * Purpose: threads that run queries neither wait for the planner's reads nor analyse pages.
 * Invariant: has a descriptor table of its own, and all signals blocked. Is started by the first statement
 * that reads long enough.
 * Data flow: watches posted by watch.c in; each watch that is due goes to walk_serve. */
#ifndef FOREREAD_PLANNER_H
#define FOREREAD_PLANNER_H

#include "watch.h"

/* Adds a watch, which is served from then on. Does not start the thread. */
void planner_add(struct watch *watch);

/* Wakes the thread, because a watch may be due. Starts it if necessary. Does not wait for it. */
void planner_wake(void);

/* Ends all work on a watch, and waits for its end. After that the watch may be freed. */
void planner_remove(struct watch *watch);

#endif
