/* Which b-tree is what: the root pages of indexes and of the tables they belong to.
 *
 * Purpose: sqlite_schema, the table that begins in page 1, read without SQLite.
 * Invariant: a schema that cannot be read whole is an empty one; names are compared, never shown.
 * Data flow: pages in, root pages out. */
#ifndef FOREREAD_SCHEMA_H
#define FOREREAD_SCHEMA_H

#include "pages.h"

struct schema_index {
    uint32_t root;
    uint32_t table; /* root page of its table; the same page for a table, which may be an index
                       b-tree too (WITHOUT ROWID) */
};

struct schema {
    struct schema_index *indexes;
    size_t n;
};

/* Replaces `schema`, which must be zeroed or loaded before. False when the database has no schema
 * that can be read; `schema` is then empty. */
bool schema_load(struct schema *schema, const struct pages *pages);

void schema_free(struct schema *schema);

/* The index, or the table, whose root this page is, or NULL. */
const struct schema_index *schema_find(const struct schema *schema, uint32_t root);

#endif
