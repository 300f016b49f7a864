/* From rows to their overflow pages.
 *
 * Purpose: a long row begins in its leaf page, which has the number of its first overflow page. Each
 * overflow page has the number of the next. A query that reads such rows waits for one page after the
 * other. Here many rows are followed together: all pages of a step are requested before the first of them
 * is read.
 * Invariant: each page number comes from the page before in the chain; a damaged chain ends.
 * Data flow: items with their leaf pages in, overflow pages in the order of the chain out. */
#ifndef FOREREAD_CHAIN_H
#define FOREREAD_CHAIN_H

#include "cursor.h"

enum {
    CHAIN_BATCH = 256, /* rows that are followed together */
    CHAIN_MOST = 8, /* limit of pages of a row: longer chains are mostly contiguous, so the kernel reads them ahead */
};

struct chain {
    uint32_t pages[CHAIN_MOST];
    unsigned n, wanted;
};

/* Finds the first overflow pages, at most `most`, of each row among `n` (at most CHAIN_BATCH) items whose
 * page is known. Reads the rows' pages and all found pages but the last of each chain. False if there is no
 * memory. */
bool chains_follow(const struct pages *pages, const struct item *items, size_t n, unsigned most,
                   struct chain *chains);

#endif
