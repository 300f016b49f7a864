/* A database's client of libforeread.
 *
 * Purpose: to use libforeread where it does no harm: where prefetched pages stay in memory.
 * Invariant: called on the planner's thread, while `walking` is false, so that no read is reported.
 * Data flow: a watch in; its client, and pseudo-descriptors of the database and its WAL, out. */
#ifndef FOREREAD_CLIENT_H
#define FOREREAD_CLIENT_H

#include "watch.h"

/* Registers the database, if it is not registered yet, with a list of up to `capacity` entries. False if
 * prefetching would do harm, or if libforeread fails. */
bool client_join(struct watch *watch, uint64_t capacity);

/* Registers the WAL that the transaction reads, if its reads are watched, so that its pages can be disclosed.
 * Called for each walk, because the log may have been removed and created again. */
void client_join_wal(struct watch *watch);

#endif
