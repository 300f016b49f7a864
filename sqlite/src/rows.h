/* From rowids to the pages of a table that hold them.
 *
 * Purpose: to resolve many rowids at once, each interior page of the table being read once and
 * those of a level asked for together before the first of them is waited for.
 * Invariant: a rowid that cannot be resolved keeps page 0.
 * Data flow: items with rowids in, the same items with pages out. */
#ifndef FOREREAD_ROWS_H
#define FOREREAD_ROWS_H

#include "cursor.h"

enum { ROWS_BATCH = 1024 };

struct rows {
    const struct pages *pages;
    uint32_t root;
    int height;         /* levels of interior pages above the leaves */
    bool only_resident; /* leave out what is not in memory, wait for nothing */
    struct {
        int64_t rowid;
        uint32_t item;
    } order[ROWS_BATCH];
    uint8_t *bytes[BTREE_MAX_DEPTH];
};

/* False when `root` is not the root of a table with rowids. `rowid` is one whose way down is known to
 * be in memory, so that measuring the height of the tree costs no waiting; with `only_resident`
 * false is answered instead of waiting. */
bool rows_open(struct rows *rows, const struct pages *pages, uint32_t root, int64_t rowid,
               bool only_resident);

/* Resolves those of `n` (at most ROWS_BATCH) items that are rows. */
void rows_resolve(struct rows *rows, struct item *items, size_t n);

void rows_close(struct rows *rows);

#endif
