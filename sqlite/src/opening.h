/* What SQLite is going to read of a database that it has just opened.
 *
 * Purpose: its first statement needs the schema, and with the schema it reads the statistics that ANALYZE
 * left, whatever the statement is. Where these pages are stands in page 1, and each is a wait.
 * Data flow: the bytes of page 1 in, page numbers out. Pure. */
#ifndef FOREREAD_OPENING_H
#define FOREREAD_OPENING_H

#include "btree.h"

/* Pages named, at most; SQLite reads a schema from its beginning. */
enum { OPENING_PAGES = 64 };

/* Puts into `pages`, in ascending order, the pages of the schema behind page 1 if it has outgrown that, else the first page of
 * sqlite_stat1 if there is one; how many. `first` is page 1, header->page_size bytes. */
size_t opening_pages(const uint8_t *first, const struct btree_header *header,
                     uint32_t pages[OPENING_PAGES]);

#endif
