/* See trail.h. */
#include "trail.h"

#include <stdlib.h>
#include <string.h>

enum { CANDIDATES = 4 /* limit of compared index leaves, the latest first */ };

/* An index leaf, and the table leaves that were read after it, in order. */
struct segment {
    uint32_t leaf;
    uint32_t tables[TRAIL_EVENTS];
    size_t n;
};

static bool read_resident(const struct pages *pages, uint32_t number, uint8_t *bytes,
                          struct btree_page *page)
{
    return pages->resident(pages->context, number) && pages_parse(pages, number, bytes, page);
}

/* The noted interior page that has the child `child`; 0 if there is none in memory. */
static uint32_t parent_of(const struct trail *trail, const struct pages *pages, uint32_t child,
                          uint8_t *bytes)
{
    for (unsigned slot = 0; slot < TRAIL_INTERIORS; slot++) {
        struct btree_page page;
        uint32_t number = trail->interiors[slot];
        if (number == 0 || number == child || !read_resident(pages, number, bytes, &page) ||
            page.type != BTREE_INDEX_INTERIOR)
            continue;
        for (unsigned i = 0; i <= page.cells; i++)
            if (btree_child(&page, i) == child)
                return number;
    }
    return 0;
}

/* Finds the path from the root of an index down to `leaf`, and the root of its table (0 if the index is a table). */
static bool find_path(const struct trail *trail, const struct schema *schema,
                      const struct pages *pages, uint32_t leaf, uint8_t *bytes,
                      struct path *path, uint32_t *table)
{
    uint32_t upward[BTREE_MAX_DEPTH], number = leaf;
    for (unsigned depth = 0; depth < BTREE_MAX_DEPTH && number != 0; depth++) {
        const struct schema_index *index = schema_find(schema, number);
        upward[depth] = number;
        if (index) {
            path->depth = depth + 1;
            for (unsigned i = 0; i <= depth; i++)
                path->pages[i] = upward[depth - i];
            *table = index->table == index->root ? 0 : index->table;
            return true;
        }
        number = parent_of(trail, pages, number, bytes);
    }
    return false;
}

/* The number of the segment's table pages that are those of the leaf's entries, in this direction. `at` is the last
 * matched entry. */
static size_t matches(const struct item *entries, int n, const struct segment *segment,
                      bool backward, unsigned *at)
{
    int position = backward ? n : -1, step = backward ? -1 : 1;
    size_t matched = 0;
    for (size_t i = 0; i < segment->n; i++) {
        int next = position + step;
        while (next >= 0 && next < n && entries[next].page != segment->tables[i])
            next += step;
        if (next < 0 || next >= n)
            continue; /* a page of another table */
        position = next;
        matched++;
    }
    *at = (unsigned)(position < 0 || position >= n ? 0 : position);
    return matched;
}

/* True if `matched` of so many pages in one direction are no accident. `otherwise` is the number of matches in the
 * other direction. In joins, pages of other tables lie between. Reads in random order match about as well in
 * both directions. */
static bool convincing(size_t matched, size_t otherwise, size_t of)
{
    if (of < 6)
        return of >= 3 && matched == of;
    return 4 * matched >= 3 * of ||
           (matched >= 8 && 4 * matched >= of && matched >= 3 * otherwise);
}

/* The entries of an index leaf, with the table pages that they refer to, as far as the pages on the way are in memory. */
static struct item *leaf_entries(const struct pages *pages, const struct btree_page *leaf,
                                 uint32_t table)
{
    struct rows *rows = malloc(sizeof *rows);
    struct item *entries = calloc(leaf->cells + 1u, sizeof *entries);
    bool opened = false;
    for (unsigned i = 0; entries && i < leaf->cells; i++)
        entries[i].row = btree_index_rowid(leaf, i, &entries[i].rowid);
    /* The path to any row that was read is in memory. */
    for (unsigned i = 0; rows && entries && i < leaf->cells && !opened; i++)
        opened = entries[i].row && rows_open(rows, pages, table, entries[i].rowid, true);
    if (opened) {
        for (unsigned from = 0; from < leaf->cells; from += ROWS_BATCH) {
            unsigned n = leaf->cells - from;
            rows_resolve(rows, entries + from, n < ROWS_BATCH ? n : ROWS_BATCH);
        }
        rows_close(rows);
    } else {
        free(entries);
        entries = NULL;
    }
    free(rows);
    return entries;
}

static bool walk_rows(const struct trail *trail, const struct schema *schema,
                      const struct pages *pages, const struct segment *segment, uint8_t *bytes,
                      struct walk_found *found)
{
    struct btree_page leaf;
    unsigned ahead, behind;
    if (!find_path(trail, schema, pages, segment->leaf, bytes, &found->path, &found->table) ||
        found->table == 0 || !read_resident(pages, segment->leaf, bytes, &leaf) ||
        leaf.type != BTREE_INDEX_LEAF)
        return false;
    struct item *entries = leaf_entries(pages, &leaf, found->table);
    if (!entries)
        return false;
    size_t forward = matches(entries, leaf.cells, segment, false, &ahead);
    size_t backward = matches(entries, leaf.cells, segment, true, &behind);
    found->path.backward = backward > forward;
    found->path.at = found->path.backward ? behind : ahead;
    found->rowid = entries[found->path.at].rowid;
    free(entries);
    return forward > backward ? convincing(forward, backward, segment->n)
                              : convincing(backward, forward, segment->n);
}

/* True if the pages that were read last are neighbouring index leaves, in the order of the index. */
static bool walk_index(const struct trail *trail, const struct schema *schema,
                       const struct pages *pages, uint8_t *bytes, struct walk_found *found)
{
    struct btree_page parent;
    uint32_t table;
    unsigned at = 0, forward = 0, backward = 0;
    if (!find_path(trail, schema, pages, trail->leaf, bytes, &found->path, &table) ||
        found->path.depth < 2 ||
        !read_resident(pages, found->path.pages[found->path.depth - 2], bytes, &parent))
        return false;
    while (at <= parent.cells && btree_child(&parent, at) != trail->leaf)
        at++;
    for (unsigned i = 1; i <= TRAIL_PATIENCE / 2; i++) {
        uint32_t earlier = trail->events[(trail->noted - 1 - i) % TRAIL_EVENTS].page;
        forward += at >= i && btree_child(&parent, at - i) == earlier;
        backward += at + i <= parent.cells && btree_child(&parent, at + i) == earlier;
    }
    found->path.backward = backward > forward;
    found->table = 0;
    /* The walk is at the beginning of the leaf. Its entries do not matter, because no rows are read. */
    found->path.at = 0;
    return forward >= 3 || backward >= 3;
}

bool trail_walk(const struct trail *trail, const struct schema *schema, const struct pages *pages,
                struct walk_found *found)
{
    uint64_t kept = trail->noted < TRAIL_EVENTS ? trail->noted : TRAIL_EVENTS;
    struct segment *segment = malloc(sizeof *segment);
    uint8_t *bytes = malloc(pages->page_size);
    bool walking = false;
    unsigned candidates = 0, index_run = 0;
    if (!segment || !bytes || trail->leaf == 0)
        goto done;
    /* From the latest event backward. The segment is filled from its end. */
    segment->n = 0;
    for (uint64_t back = 1; back <= kept && candidates < CANDIDATES && !walking; back++) {
        uint64_t event = (trail->noted - back) % TRAIL_EVENTS;
        if (!trail->events[event].index) {
            segment->tables[TRAIL_EVENTS - 1 - segment->n++] = trail->events[event].page;
            if (back < kept)
                continue;
            segment->leaf = trail->leaf;
            if (candidates > 0)
                break; /* the event of these pages' index leaf is forgotten */
        } else {
            segment->leaf = trail->events[event].page;
            index_run += index_run + 1 == back;
        }
        memmove(segment->tables, segment->tables + TRAIL_EVENTS - segment->n,
                segment->n * sizeof segment->tables[0]);
        if (segment->n > 0) {
            candidates++;
            walking = walk_rows(trail, schema, pages, segment, bytes, found);
        }
        segment->n = 0;
    }
    if (!walking && index_run > TRAIL_PATIENCE / 2)
        walking = walk_index(trail, schema, pages, bytes, found);
done:
    free(segment);
    free(bytes);
    return walking;
}
