/* See schema.h. */
#include "schema.h"

#include <stdlib.h>
#include <string.h>

enum {
    MAX_OBJECTS = 1 << 16,
    MAX_PAGES = 1 << 14, /* of a schema; the pages of a damaged one may form a circle */
    NAME_BYTES = 512, /* of a table's name; tables with longer names are skipped */
    /* Bytes of a row that are read: enough for type, name, tbl_name and rootpage, which come first. */
    ROW_BYTES = 4096,
};

/* A table or an index, from its row of sqlite_schema. */
struct object {
    char *table; /* tbl_name */
    uint32_t length;
    uint32_t root;
    bool index;
};

struct loading {
    const struct pages *pages;
    struct object *objects;
    size_t n, room;
    unsigned visited; /* pages */
    uint8_t row[ROW_BYTES];
    uint8_t overflow[BTREE_MAX_PAGE];
};

/* Copies the beginning of a payload, including its overflow pages. Returns the number of bytes. */
static uint32_t gather(struct loading *loading, const uint8_t *payload, uint32_t local,
                       uint64_t total, uint32_t next)
{
    uint32_t wanted = total < ROW_BYTES ? (uint32_t)total : ROW_BYTES;
    uint32_t have = local < wanted ? local : wanted;
    const struct pages *pages = loading->pages;
    memcpy(loading->row, payload, have);
    while (have < wanted && next != 0 && pages->read(pages->context, next, loading->overflow)) {
        uint32_t piece = pages->usable - 4;
        if (piece > wanted - have)
            piece = wanted - have;
        memcpy(loading->row + have, loading->overflow + 4, piece);
        have += piece;
        next = btree_next_overflow(loading->overflow);
    }
    return have;
}

static bool add_row(struct loading *loading, uint32_t length)
{
    struct btree_column columns[4];
    int64_t root;
    const uint8_t *row = loading->row;
    if (btree_columns(row, length, columns, 4) < 4)
        return true;
    const struct btree_column type = columns[0], table = columns[2];
    if (table.at > length || table.length > length - table.at || table.length > NAME_BYTES)
        return true;
    bool index = btree_text_is(row, length, type, "index");
    if (!index && !btree_text_is(row, length, type, "table"))
        return true; /* a view or a trigger, which has no pages */
    if (!btree_integer(row, length, columns[3], &root) || root < 2 || root > UINT32_MAX)
        return true; /* a virtual table, which has no pages either */
    if (loading->n == loading->room) {
        size_t room = loading->room ? 2 * loading->room : 64;
        struct object *grown = room <= MAX_OBJECTS
                                   ? realloc(loading->objects, room * sizeof *grown)
                                   : NULL;
        if (!grown)
            return false;
        loading->objects = grown;
        loading->room = room;
    }
    char *name = malloc(table.length + 1);
    if (!name)
        return false;
    memcpy(name, row + table.at, table.length);
    loading->objects[loading->n++] = (struct object){name, table.length, (uint32_t)root, index};
    return true;
}

static bool load_tree(struct loading *loading, uint32_t number, unsigned depth)
{
    struct btree_page page;
    bool loaded = depth < BTREE_MAX_DEPTH && loading->visited++ < MAX_PAGES;
    uint8_t *bytes = loaded ? malloc(loading->pages->page_size) : NULL;
    loaded = bytes && pages_parse(loading->pages, number, bytes, &page);
    if (loaded && page.type == BTREE_TABLE_INTERIOR) {
        for (unsigned i = 0; loaded && i <= page.cells; i++)
            loaded = load_tree(loading, btree_child(&page, i), depth + 1);
    } else if (loaded && page.type == BTREE_TABLE_LEAF) {
        for (unsigned i = 0; loaded && i < page.cells; i++) {
            uint32_t local, overflow;
            uint64_t total;
            const uint8_t *payload = btree_payload(&page, i, &local, &total, &overflow);
            loaded = payload &&
                     add_row(loading, gather(loading, payload, local, total, overflow));
        }
    } else {
        loaded = false;
    }
    free(bytes);
    return loaded;
}

/* By table name, shorter names first, and each table before its indexes. */
static int by_table(const void *left, const void *right)
{
    const struct object *a = left, *b = right;
    if (a->length != b->length)
        return a->length < b->length ? -1 : 1;
    int order = memcmp(a->table, b->table, a->length);
    return order != 0 ? order : (int)a->index - (int)b->index;
}

static bool relate(struct schema *schema, struct loading *loading)
{
    const struct object *table = NULL;
    qsort(loading->objects, loading->n, sizeof *loading->objects, by_table);
    schema->indexes = malloc((loading->n + 1) * sizeof *schema->indexes);
    if (!schema->indexes)
        return false;
    for (size_t i = 0; i < loading->n; i++) {
        const struct object *object = &loading->objects[i];
        if (!object->index) {
            table = object;
            schema->indexes[schema->n++] = (struct schema_index){object->root, object->root};
        } else if (table && table->length == object->length &&
                   memcmp(table->table, object->table, object->length) == 0) {
            schema->indexes[schema->n++] = (struct schema_index){object->root, table->root};
        }
    }
    return true;
}

bool schema_load(struct schema *schema, const struct pages *pages)
{
    schema_free(schema);
    struct loading *loading = calloc(1, sizeof *loading);
    if (!loading)
        return false;
    loading->pages = pages;
    bool loaded = load_tree(loading, 1, 0);
    if (loaded && loading->n > 0)
        loaded = relate(schema, loading);
    for (size_t i = 0; i < loading->n; i++)
        free(loading->objects[i].table);
    free(loading->objects);
    free(loading);
    return loaded;
}

void schema_free(struct schema *schema)
{
    free(schema->indexes);
    *schema = (struct schema){0};
}

const struct schema_index *schema_find(const struct schema *schema, uint32_t root)
{
    for (size_t i = 0; i < schema->n; i++)
        if (schema->indexes[i].root == root)
            return &schema->indexes[i];
    return NULL;
}
