/* Where pages come from: the one thing that schema, cursor, rows and trail ask of the world.
 *
 * Purpose: to keep those parts pure. The planner answers from a database file (file.c), tests
 * answer from memory.
 * Data flow: page numbers (from 1, as SQLite counts) in; bytes, or a word about them, out. */
#ifndef FOREREAD_PAGES_H
#define FOREREAD_PAGES_H

#include "btree.h"

struct pages {
    /* Reads one whole page, waiting for the device if it must; false when there is none. */
    bool (*read)(void *context, uint32_t page, uint8_t *into);
    /* Whether the page is in memory, so that reading it costs the device nothing. */
    bool (*resident)(void *context, uint32_t page);
    /* Asks for pages that `read` will be called for soon; waits for nothing. Reorders `pages`. */
    void (*fetch)(void *context, uint32_t *pages, size_t n);
    /* Whether to give up: the database is being closed, or the query has ended. */
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
