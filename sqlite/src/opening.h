/* SQLite's first reads of a database that it has just opened.
 *
 * Purpose: any first statement needs the schema, and with the schema SQLite reads the statistics of ANALYZE.
 * Page 1 has the numbers of these pages. Without a request, SQLite waits for each of them.
 * Data flow: the bytes of page 1 in, page numbers out. Pure. */
#ifndef FOREREAD_OPENING_H
#define FOREREAD_OPENING_H

#include "btree.h"

/* Limit of the returned pages. SQLite reads a schema from its beginning. */
enum { OPENING_PAGES = 64 };

/* Stores page numbers in `pages`, in ascending order, and returns their number: the children of page 1 if the schema does not fit
 * in it, else the root of sqlite_stat1 if there is one. `first` is page 1, header->page_size bytes. */
size_t opening_pages(const uint8_t *first, const struct btree_header *header,
                     uint32_t pages[OPENING_PAGES]);

#endif
