/* The schema of a database: the root pages of indexes and of their tables.
 *
 * Purpose: to read sqlite_schema, the table that begins in page 1, without SQLite.
 * Invariant: a schema that cannot be read completely is empty. Names are compared, never shown.
 * Data flow: pages in, root pages out. */
#ifndef FOREREAD_SCHEMA_H
#define FOREREAD_SCHEMA_H

#include "pages.h"

struct schema_index {
    uint32_t root;
    uint32_t table; /* root page of its table; equal to `root` for a table, which may also be an
                       index b-tree (WITHOUT ROWID) */
};

struct schema {
    struct schema_index *indexes;
    size_t n;
};

/* Replaces `schema`, which must be zeroed or loaded before. False if the schema cannot be read; `schema` is
 * empty then. */
bool schema_load(struct schema *schema, const struct pages *pages);

void schema_free(struct schema *schema);

/* The index or table with this root page; NULL if there is none. */
const struct schema_index *schema_find(const struct schema *schema, uint32_t root);

#endif
