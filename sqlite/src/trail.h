/* What a connection has read lately, and whether that is a walk through an index.
 *
 * Purpose: the query's side (trail_note) costs a few instructions a page and understands nothing;
 * the planner's side (trail_walk) works on a copy and finds out which index is walked, where the
 * walk is and which way it goes.
 * Invariant: a walk is claimed only when the pages that were read are those that the entries of
 * one index leaf refer to, in their order. The planner's side waits for no device.
 * Data flow: page numbers and kinds in; a path from an index root to the entry read last out. */
#ifndef FOREREAD_TRAIL_H
#define FOREREAD_TRAIL_H

#include "rows.h"
#include "schema.h"

enum {
    TRAIL_EVENTS = 64,
    TRAIL_INTERIORS = 256,
    /* A query may read this many rows before anything is done for it: LIMIT 16 costs nothing. */
    TRAIL_PATIENCE = 16,
};

struct trail {
    struct {
        uint32_t page;
        bool index; /* an index leaf, else a table leaf */
    } events[TRAIL_EVENTS];
    uint32_t leaf;                       /* the index leaf read last, 0: none */
    uint32_t interiors[TRAIL_INTERIORS]; /* interior index pages seen, by hash of their number */
    uint64_t noted;                      /* events so far */
    uint64_t table_reads, index_reads;   /* since the statement began */
    uint64_t overflow_reads;             /* pages of rows' chains, since then */
    unsigned run, reach; /* of them: those of the row read last, and the most of any row */
    uint32_t next;       /* the overflow page that comes next in that row's chain */
};

/* Notes that page `number` of b-tree kind `type` was read. */
static inline void trail_note(struct trail *trail, uint8_t type, uint32_t number)
{
    if (type == BTREE_INDEX_INTERIOR) {
        trail->interiors[number % TRAIL_INTERIORS] = number;
        return;
    }
    if (type != BTREE_TABLE_LEAF && type != BTREE_INDEX_LEAF)
        return;
    bool index = type == BTREE_INDEX_LEAF;
    trail->events[trail->noted % TRAIL_EVENTS].page = number;
    trail->events[trail->noted % TRAIL_EVENTS].index = index;
    trail->noted++;
    if (index) {
        trail->leaf = number;
        trail->index_reads++;
    } else {
        trail->table_reads++;
    }
}

/* Notes that overflow page `number` was read, which `next` follows in its chain. Those of index entries are
 * not counted. */
static inline void trail_note_overflow(struct trail *trail, uint32_t number, uint32_t next)
{
    if (trail->noted == 0 || trail->events[(trail->noted - 1) % TRAIL_EVENTS].index)
        return;
    /* The leaf page of the row may have been in SQLite's cache: the chain tells rows apart. */
    trail->run = number == trail->next ? trail->run + 1 : 1;
    trail->next = next;
    trail->reach = trail->run > trail->reach ? trail->run : trail->reach;
    trail->overflow_reads++;
}

/* How long the statement has been reading what an index walk reads: rows, or, while it needs no
 * table, index pages. */
static inline uint64_t trail_length(const struct trail *trail)
{
    if (trail->index_reads == 0)
        return 0;
    return trail->table_reads > trail->index_reads ? trail->table_reads : trail->index_reads;
}

/* Whether so many of the rows go on in overflow pages that those are worth looking for. */
static inline bool trail_spills(const struct trail *trail)
{
    return trail->overflow_reads > 0 && 4 * trail->overflow_reads >= trail->table_reads;
}

/* Forgets what happened in the statement that has ended; keeps what is known of the indexes. */
static inline void trail_end(struct trail *trail)
{
    trail->noted = trail->table_reads = trail->index_reads = trail->overflow_reads = 0;
    trail->leaf = trail->next = trail->run = trail->reach = 0;
}

struct walk_found {
    struct path path;
    uint32_t table; /* root page of the table whose rows are read, 0: the index alone is read */
    int64_t rowid;  /* of the entry at path.at, when there is a table */
};

bool trail_walk(const struct trail *trail, const struct schema *schema, const struct pages *pages,
                struct walk_found *found);

#endif
