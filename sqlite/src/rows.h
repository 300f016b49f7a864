/* From rowids to the pages of a table that hold them.
 *
 * Purpose: to resolve many rowids together. Each interior page of the table is read once, and the interior
 * pages below it are requested together before the first of them is read.
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
    bool only_resident; /* skip pages that are not in memory, so that nothing is waited for */
    struct {
        int64_t rowid;
        uint32_t item;
    } order[ROWS_BATCH];
    uint8_t *bytes[BTREE_MAX_DEPTH];
};

/* Determines the height of the tree along the path to `rowid`, which should be in memory: with
 * `only_resident` the result is false if it is not, otherwise its pages are waited for. False also if `root`
 * is not the root of a table with rowids. */
bool rows_open(struct rows *rows, const struct pages *pages, uint32_t root, int64_t rowid,
               bool only_resident);

/* Resolves the rows among `n` (at most ROWS_BATCH) items. */
void rows_resolve(struct rows *rows, struct item *items, size_t n);

void rows_close(struct rows *rows);

#endif
