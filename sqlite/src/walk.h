/* One walk through an index, helped: from what a statement has read to the list of what it will read.
 *
 * Purpose: to look ahead of a walk and disclose to libforeread, in its order, the pages it will read.
 * The engine behind the list orders, paces and budgets.
 * Invariant: runs on the planner's thread; takes no lock on a database and writes nothing. A page is disclosed
 * where the statement will read it: in the database file, or in a frame of the WAL.
 * Data flow: a watch with its snapshot in; foreread_request_prefetching out. */
#ifndef FOREREAD_WALK_H
#define FOREREAD_WALK_H

#include "watch.h"

/* Readies the planner's side of a new watch. */
void walk_init(struct watch *watch);

/* Whether there is something to do for a watch. */
bool walk_due(const struct watch *watch);

/* Does what is due, a batch at most, so that several databases are served in turn; true when there is
 * more of it. */
bool walk_serve(struct watch *watch);

/* What happened in this process so far. */
struct walk_counts {
    uint64_t walks;     /* walks helped */
    uint64_t resident;  /* walks left alone because their pages were in memory */
    uint64_t disclosed; /* pages handed over */
};

struct walk_counts walk_counts(void);

#endif
