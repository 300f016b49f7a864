/* Help for one index walk: from the statement's past reads to a list of its next reads.
 *
 * Purpose: to walk the index ahead of a statement, and to disclose the pages that it will read to libforeread,
 * in their order. libforeread decides the order, pace and memory of fetching.
 * Invariant: runs on the planner's thread, takes no lock on a database, and writes nothing. A page is disclosed
 * at the place where the statement will read it: in the database file, or in a frame of the WAL.
 * Data flow: a watch with its snapshot in; foreread_request_prefetching out. */
#ifndef FOREREAD_WALK_H
#define FOREREAD_WALK_H

#include "watch.h"

/* Initialises the planner's side of a new watch. */
void walk_init(struct watch *watch);

/* True if there is something to do for a watch. */
bool walk_due(const struct watch *watch);

/* Serves a watch, by one batch at most, so that several databases are served in turn. True if more is to be done at
 * once. */
bool walk_serve(struct watch *watch);

/* Counts of this process so far. */
struct walk_counts {
    uint64_t walks;     /* walks helped */
    uint64_t resident;  /* walks left alone because their pages were in memory */
    uint64_t disclosed; /* pages disclosed */
};

struct walk_counts walk_counts(void);

#endif
