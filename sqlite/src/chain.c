/* See chain.h. */
#include "chain.h"

#include <stdlib.h>

/* Begins a row's chain, if its leaf page `page` has an overflow page for it. */
static void begin(const struct btree_page *page, const struct item *item, unsigned most,
                  struct chain *chain)
{
    uint32_t local, overflow;
    uint64_t total;
    unsigned at;
    if (!btree_cell_of(page, item->rowid, &at) ||
        !btree_payload(page, at, &local, &total, &overflow) || overflow == 0)
        return;
    uint64_t piece = page->usable - 4, length = (total - local + piece - 1) / piece;
    chain->wanted = length < most ? (unsigned)length : most;
    chain->pages[0] = overflow;
    chain->n = chain->wanted > 0;
}

bool chains_follow(const struct pages *pages, const struct item *items, size_t n, unsigned most,
                   struct chain *chains)
{
    uint32_t wanted[CHAIN_BATCH], known = 0;
    struct btree_page page;
    uint8_t *bytes = malloc(pages->page_size);
    size_t asked = 0;
    if (!bytes)
        return false;
    most = most < CHAIN_MOST ? most : CHAIN_MOST;
    for (size_t i = 0; i < n; i++) {
        chains[i] = (struct chain){.n = 0};
        if (items[i].row && items[i].page != 0)
            wanted[asked++] = items[i].page;
    }
    if (asked > 1)
        pages->fetch(pages->context, wanted, asked);
    for (size_t i = 0; i < n; i++) {
        if (!items[i].row || items[i].page == 0)
            continue;
        if (items[i].page != known)
            known = pages_parse(pages, items[i].page, bytes, &page) ? items[i].page : 0;
        if (known != 0)
            begin(&page, &items[i], most, &chains[i]);
    }
    for (unsigned step = 1; step < most; step++) {
        asked = 0;
        for (size_t i = 0; i < n; i++)
            if (chains[i].n == step && chains[i].wanted > step)
                wanted[asked++] = chains[i].pages[step - 1];
        if (asked > 1)
            pages->fetch(pages->context, wanted, asked);
        for (size_t i = 0; i < n && asked > 0; i++) {
            if (chains[i].n != step || chains[i].wanted <= step ||
                pages->stopped(pages->context) ||
                !pages->read(pages->context, chains[i].pages[step - 1], bytes))
                continue;
            chains[i].pages[step] = btree_next_overflow(bytes);
            chains[i].n += chains[i].pages[step] != 0;
        }
    }
    free(bytes);
    return true;
}
