/* What an index walk will read next: the pages of the index and the rows its entries refer to.
 *
 * Purpose: to go through an index b-tree as SQLite's cursor will, ahead of it, in either direction.
 * Invariant: never goes back, never goes deeper than the path it began with; a page that is not
 * what it should be ends the walk.
 * Data flow: a path from root to leaf in; items out, in the order of the walk. */
#ifndef FOREREAD_CURSOR_H
#define FOREREAD_CURSOR_H

#include "pages.h"

/* A way down a b-tree. */
struct path {
    uint32_t pages[BTREE_MAX_DEPTH]; /* root first, leaf last */
    unsigned depth;
    unsigned at; /* the cell of the leaf that was read last */
    bool backward;
};

/* One thing the walk comes by. */
struct item {
    int64_t rowid; /* of a row */
    uint32_t page; /* an index page; of a row: the table's leaf page, 0 while unknown */
    bool row;
    bool leaf; /* an index page without children */
};

struct cursor_level {
    struct btree_page page;
    uint8_t *bytes;
    int at;       /* interior: the child we are in or go to; leaf: the next cell */
    int fetched;  /* interior: children asked for from `at` on */
    bool descend; /* interior: child `at` has not been entered */
};

struct cursor {
    const struct pages *pages;
    struct cursor_level levels[BTREE_MAX_DEPTH];
    unsigned depth; /* of the whole tree */
    unsigned level; /* where the cursor is, plus one; 0 at the end */
    unsigned ahead; /* index leaves to ask for at once; the caller adapts it */
    bool backward;
    bool skim; /* the caller wants page numbers only: leaves are named, and not read */
};

enum { CURSOR_MAX_AHEAD = 256 };

/* Stands behind `path->at`. False when the path is not one; `cursor` then needs no closing. */
bool cursor_open(struct cursor *cursor, const struct pages *pages, const struct path *path);

/* The next item; false at the end of the index, or of what can be read of it. */
bool cursor_next(struct cursor *cursor, struct item *item);

void cursor_close(struct cursor *cursor);

#endif
