/* See opening.h. */
#include "opening.h"

/* The root of sqlite_stat1, from a leaf of the schema; 0 if it is not in this leaf. */
static uint32_t statistics(const struct btree_page *schema)
{
    for (unsigned i = 0; i < schema->cells; i++) {
        /* type, name, tbl_name, rootpage */
        struct btree_column columns[4];
        uint32_t local, overflow;
        uint64_t total;
        int64_t root;
        const uint8_t *row = btree_payload(schema, i, &local, &total, &overflow);
        if (row && btree_columns(row, local, columns, 4) == 4 &&
            btree_text_is(row, local, columns[1], "sqlite_stat1") &&
            btree_integer(row, local, columns[3], &root) && root > 1 && root <= UINT32_MAX)
            return (uint32_t)root;
    }
    return 0;
}

size_t opening_pages(const uint8_t *first, const struct btree_header *header,
                     uint32_t pages[OPENING_PAGES])
{
    struct btree_page schema;
    size_t n = 0;
    if (!btree_page_parse(first, header->usable, 1, &schema))
        return 0;
    if (schema.type == BTREE_TABLE_INTERIOR) {
        for (unsigned i = 0; i <= schema.cells && n < OPENING_PAGES; i++) {
            pages[n] = btree_child(&schema, i);
            n += pages[n] > 1;
        }
        btree_sort(pages, n);
    } else if (schema.type == BTREE_TABLE_LEAF) {
        pages[0] = statistics(&schema);
        n = pages[0] > 1;
    }
    return n;
}
