/* See rows.h. */
#include "rows.h"

#include <stdlib.h>

static uint8_t *level_bytes(struct rows *rows, int level)
{
    if (!rows->bytes[level])
        rows->bytes[level] = malloc(rows->pages->page_size);
    return rows->bytes[level];
}

bool rows_open(struct rows *rows, const struct pages *pages, uint32_t root, int64_t rowid,
               bool only_resident)
{
    uint32_t number = root;
    rows->pages = pages;
    rows->root = root;
    rows->only_resident = only_resident;
    for (int level = 0; level < BTREE_MAX_DEPTH; level++)
        rows->bytes[level] = NULL;
    for (rows->height = 0; rows->height < BTREE_MAX_DEPTH; rows->height++) {
        struct btree_page page;
        unsigned child;
        uint8_t *bytes = level_bytes(rows, 0);
        if (!bytes || (only_resident && !pages->resident(pages->context, number)) ||
            !pages_parse(pages, number, bytes, &page))
            break;
        if (page.type == BTREE_TABLE_LEAF)
            return true;
        if (!btree_child_for(&page, rowid, &child))
            break;
        number = btree_child(&page, child);
    }
    rows_close(rows);
    return false;
}

void rows_close(struct rows *rows)
{
    for (int level = 0; level < BTREE_MAX_DEPTH; level++) {
        free(rows->bytes[level]);
        rows->bytes[level] = NULL;
    }
}

/* The end of those rowids in order[from..to) that lead to `child`, as order[from] does. */
static size_t same_child(const struct rows *rows, const struct btree_page *page, unsigned child,
                         size_t from, size_t to)
{
    int64_t key;
    if (child == page->cells)
        return to;
    if (!btree_table_key(page, child, &key))
        return from + 1;
    size_t end = from + 1;
    while (end < to && rows->order[end].rowid <= key)
        end++;
    return end;
}

/* Resolves order[from..to), which are all below the page `number` at `level`. */
static void resolve_below(struct rows *rows, struct item *items, uint32_t number, int level,
                          size_t from, size_t to)
{
    struct btree_page page;
    unsigned child;
    if (level == rows->height) {
        for (size_t i = from; i < to; i++)
            items[rows->order[i].item].page = number;
        return;
    }
    uint8_t *bytes = level_bytes(rows, level);
    if (!bytes || (rows->only_resident && !rows->pages->resident(rows->pages->context, number)) ||
        !pages_parse(rows->pages, number, bytes, &page) || page.type != BTREE_TABLE_INTERIOR)
        return;
    if (level + 1 < rows->height && !rows->only_resident) {
        uint32_t wanted[ROWS_BATCH];
        size_t n = 0;
        for (size_t i = from; i < to;) {
            if (!btree_child_for(&page, rows->order[i].rowid, &child))
                return;
            wanted[n++] = btree_child(&page, child);
            i = same_child(rows, &page, child, i, to);
        }
        if (n > 1)
            rows->pages->fetch(rows->pages->context, wanted, n);
    }
    for (size_t i = from; i < to;) {
        if (!btree_child_for(&page, rows->order[i].rowid, &child))
            return;
        size_t end = same_child(rows, &page, child, i, to);
        uint32_t below = btree_child(&page, child);
        if (below != 0)
            resolve_below(rows, items, below, level + 1, i, end);
        i = end;
    }
}

static int by_rowid(const void *left, const void *right)
{
    int64_t a = *(const int64_t *)left, b = *(const int64_t *)right;
    return a < b ? -1 : a > b;
}

void rows_resolve(struct rows *rows, struct item *items, size_t n)
{
    size_t known = 0;
    for (size_t i = 0; i < n; i++) {
        if (!items[i].row)
            continue;
        rows->order[known].rowid = items[i].rowid;
        rows->order[known].item = (uint32_t)i;
        known++;
    }
    if (known == 0)
        return;
    qsort(rows->order, known, sizeof rows->order[0], by_rowid);
    resolve_below(rows, items, rows->root, 0, 0, known);
}
