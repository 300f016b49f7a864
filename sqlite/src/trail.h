/* A connection's latest reads, and the detection of an index walk in them.
 *
 * Purpose: the query's side (trail_note) only stores page numbers, in a few instructions per page. The
 * planner's side (trail_walk) works on a copy, and finds the index, the position and the direction of a walk.
 * Invariant: the reads count as a walk only if enough of them are the pages that the entries of one index
 * leaf refer to, in their order, or if they are neighbouring leaves of an index. The planner's side waits for
 * no device.
 * Data flow: page numbers and kinds in; a path from an index root to the entry read last out. */
#ifndef FOREREAD_TRAIL_H
#define FOREREAD_TRAIL_H

#include "rows.h"
#include "schema.h"

enum {
    TRAIL_EVENTS = 64,
    TRAIL_INTERIORS = 256,
    /* Rows that a query reads before the planner is asked: LIMIT 16 costs nothing. */
    TRAIL_PATIENCE = 16,
};

struct trail {
    struct {
        uint32_t page;
        bool index; /* true for an index leaf, false for a table leaf */
    } events[TRAIL_EVENTS];
    uint32_t leaf;                       /* the index leaf read last; 0 for none */
    uint32_t interiors[TRAIL_INTERIORS]; /* interior index pages that were read, by hash of their number */
    uint64_t noted;                      /* events since the statement began */
    uint64_t table_reads, index_reads;   /* leaves since the statement began */
    uint64_t overflow_reads;             /* overflow pages of rows since the statement began */
    unsigned run, reach; /* overflow pages of the row read last, and of the row with most */
    uint32_t next;       /* the next overflow page in the chain of the row read last */
};

/* Notes a read of page `number`, of the b-tree kind `type`. */
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

/* Notes a read of overflow page `number`; `next` is the next one in its chain. Overflow pages of index entries
 * are not counted. */
static inline void trail_note_overflow(struct trail *trail, uint32_t number, uint32_t next)
{
    if (trail->noted == 0 || trail->events[(trail->noted - 1) % TRAIL_EVENTS].index)
        return;
    /* The row's leaf page may have been in SQLite's cache, unread. A page that does not continue the chain begins a row. */
    trail->run = number == trail->next ? trail->run + 1 : 1;
    trail->next = next;
    trail->reach = trail->run > trail->reach ? trail->run : trail->reach;
    trail->overflow_reads++;
}

/* The length of the statement's possible walk so far: table leaves, or index leaves if it has read more of these. 0 without
 * index leaves. */
static inline uint64_t trail_length(const struct trail *trail)
{
    if (trail->index_reads == 0)
        return 0;
    return trail->table_reads > trail->index_reads ? trail->table_reads : trail->index_reads;
}

/* True if overflow pages are worth disclosing: at least one was read for every four table leaves. */
static inline bool trail_spills(const struct trail *trail)
{
    return trail->overflow_reads > 0 && 4 * trail->overflow_reads >= trail->table_reads;
}

/* The statement has ended: forgets its reads, except interior pages of indexes. */
static inline void trail_end(struct trail *trail)
{
    trail->noted = trail->table_reads = trail->index_reads = trail->overflow_reads = 0;
    trail->leaf = trail->next = trail->run = trail->reach = 0;
}

struct walk_found {
    struct path path;
    uint32_t table; /* root page of the table whose rows are read; 0 if only the index is read */
    int64_t rowid;  /* rowid of the entry at path.at, if there is a table */
};

/* Finds the walk that the latest reads are part of. False if there is none. */
bool trail_walk(const struct trail *trail, const struct schema *schema, const struct pages *pages,
                struct walk_found *found);

#endif
