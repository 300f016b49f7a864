/* A database's client of libforeread.
 *
 * Purpose: to join where help does no harm: where what is fetched ahead stays in memory.
 * Invariant: on the planner's thread, while the database's reads are not reported.
 * Data flow: a watch in; its client, and pseudo-descriptors of the database and its WAL, out. */
#ifndef FOREREAD_CLIENT_H
#define FOREREAD_CLIENT_H

#include "watch.h"

/* Registers the database, if that is not done, with a list of so many entries. False when the process had
 * better do without, or libforeread cannot. */
bool client_join(struct watch *watch, uint64_t capacity);

/* Registers the WAL that the transaction reads, if its reads are seen: its pages can be disclosed then. A log
 * may have been removed and made anew since. */
void client_join_wal(struct watch *watch);

#endif
