/* The planner: the one thread that looks ahead of walks.
 *
 * Purpose: to keep all that waits for a device, and all that understands, off the threads that run queries.
 * Invariant: has a descriptor table of its own and every signal blocked; is started by the first
 * statement that reads long enough.
 * Data flow: watches posted by watch.c in; each that is due to walk_serve. */
#ifndef FOREREAD_PLANNER_H
#define FOREREAD_PLANNER_H

#include "watch.h"

/* Begins to serve a watch. Costs nothing until planner_wake. */
void planner_add(struct watch *watch);

/* There may be something to do. Starts the thread when there is none; never waits. */
void planner_wake(void);

/* Ends all work on a watch and waits for that; the watch may be freed then. */
void planner_remove(struct watch *watch);

#endif
