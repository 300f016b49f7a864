/* The source of pages for schema, cursor, rows, chain and trail.
 *
 * Purpose: to keep those parts pure. The planner's source is a database and its WAL (store.c), that of the
 * tests is memory.
 * Data flow: page numbers (from 1, as in SQLite) in; bytes, or facts about them, out. */
#ifndef FOREREAD_PAGES_H
#define FOREREAD_PAGES_H

#include "btree.h"

struct pages {
    /* Reads a whole page, waiting for the device if necessary. False if there is no such page. */
    bool (*read)(void *context, uint32_t page, uint8_t *into);
    /* True if the page is in memory. */
    bool (*resident)(void *context, uint32_t page);
    /* Requests pages that will be read soon, without waiting. Reorders `pages`. */
    void (*fetch)(void *context, uint32_t *pages, size_t n);
    /* True if the database is being closed, or the query has ended: the work is stopped. */
    bool (*stopped)(void *context);
    void *context;
    uint32_t page_size, usable; /* bytes */
};

/* Reads and parses one b-tree page. */
static inline bool pages_parse(const struct pages *pages, uint32_t number, uint8_t *bytes,
                               struct btree_page *page)
{
    return !pages->stopped(pages->context) && pages->read(pages->context, number, bytes) &&
           btree_page_parse(bytes, pages->usable, number, page);
}

#endif
