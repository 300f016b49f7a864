/* From rows to their overflow pages.
 *
 * Purpose: a long row begins in its leaf page, which names the first of its overflow pages; each of
 * those names the next. A query that reads such rows waits for one after the other. Here many rows are gone
 * through together: the pages of a step are asked for at once, before the first of them is waited for.
 * Invariant: names no page that has not been read of; a chain that is damaged ends.
 * Data flow: items with their leaf pages in, overflow pages in the order of the chain out. */
#ifndef FOREREAD_CHAIN_H
#define FOREREAD_CHAIN_H

#include "cursor.h"

enum {
    CHAIN_BATCH = 256, /* rows at once */
    CHAIN_MOST = 8, /* pages of a row: longer ones mostly lie in a row, for the kernel to read ahead */
};

struct chain {
    uint32_t pages[CHAIN_MOST];
    unsigned n, wanted;
};

/* The first overflow pages, at most `most`, of each row among `n` (at most CHAIN_BATCH) items whose page
 * is known. Reads all of the pages but the last of each chain. False without memory. */
bool chains_follow(const struct pages *pages, const struct item *items, size_t n, unsigned most,
                   struct chain *chains);

#endif
