/* The next reads of an index walk: pages of the index, and the rows that its entries refer to.
 *
 * Purpose: to walk an index b-tree like SQLite's cursor, ahead of it, in either direction.
 * Invariant: never reverses its direction, and never goes deeper than the path it began with. A page of
 * an unexpected kind ends the walk.
 * Data flow: a path from root to leaf in; items out, in the order of the walk. */
#ifndef FOREREAD_CURSOR_H
#define FOREREAD_CURSOR_H

#include "pages.h"

/* A path down a b-tree. */
struct path {
    uint32_t pages[BTREE_MAX_DEPTH]; /* root first, leaf last */
    unsigned depth;
    unsigned at; /* the leaf's cell that was read last */
    bool backward;
};

/* A page or row that the walk reads. */
struct item {
    int64_t rowid; /* if it is a row */
    uint32_t page; /* an index page; for a row, its leaf page of the table, 0 if unknown */
    bool row;
    bool leaf; /* an index page without children */
};

struct cursor_level {
    struct btree_page page;
    uint8_t *bytes;
    int at;       /* interior page: the child entered last, or the next one; leaf: the next cell */
    int fetched;  /* interior page: children from `at` on that were requested */
    bool descend; /* interior page: child `at` is to be entered next */
};

struct cursor {
    const struct pages *pages;
    struct cursor_level levels[BTREE_MAX_DEPTH];
    unsigned depth; /* levels of the tree */
    unsigned level; /* the cursor's level, plus one; 0 at the end */
    unsigned ahead; /* children to request at once; the caller adapts it */
    bool backward;
    bool skim; /* only page numbers are wanted: leaves are returned but not read */
};

enum { CURSOR_MAX_AHEAD = 256 };

/* Places the cursor behind `path->at`, in the direction of the walk. False if the pages do not form this path;
 * `cursor` need not be closed then. */
bool cursor_open(struct cursor *cursor, const struct pages *pages, const struct path *path);

/* The next item. False at the end of the index, or if a page cannot be read. */
bool cursor_next(struct cursor *cursor, struct item *item);

void cursor_close(struct cursor *cursor);

#endif
