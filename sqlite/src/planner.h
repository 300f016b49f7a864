/* The planner: one thread that turns walks into lists.
 *
 * Purpose: to look ahead of an index walk and disclose to libforeread, in its order, the pages it
 * will read. The engine behind the list orders, paces and budgets.
 * Invariant: takes no lock on a database and writes nothing; has a descriptor table of its own and
 * every signal blocked; is started by the first statement that reads long enough.
 * Data flow: watches posted by vfs.c in; foreread_request_prefetching out. */
#ifndef FOREREAD_PLANNER_H
#define FOREREAD_PLANNER_H

#include "watch.h"

/* Begins to serve a watch. Costs nothing until planner_wake. */
void planner_add(struct watch *watch);

/* There may be something to do. Starts the thread when there is none; never waits. */
void planner_wake(void);

/* Ends all work on a watch and waits for that; the watch may be freed then. */
void planner_remove(struct watch *watch);

/* For the status function: what happened in this process so far. */
struct planner_counts {
    uint64_t walks;     /* walks helped */
    uint64_t resident;  /* walks left alone because their pages were in memory */
    uint64_t disclosed; /* pages handed over */
};

struct planner_counts planner_counts(void);

#endif
