/* See cursor.h. */
#include "cursor.h"

#include <stdlib.h>

static bool read_level(struct cursor *cursor, unsigned level, uint32_t number)
{
    struct cursor_level *here = &cursor->levels[level];
    bool leaf = level + 1 == cursor->depth;
    if (!here->bytes && !(here->bytes = malloc(cursor->pages->page_size)))
        return false;
    if (!pages_parse(cursor->pages, number, here->bytes, &here->page))
        return false;
    return here->page.type == (leaf ? BTREE_INDEX_LEAF : BTREE_INDEX_INTERIOR);
}

bool cursor_open(struct cursor *cursor, const struct pages *pages, const struct path *path)
{
    *cursor = (struct cursor){.pages = pages, .depth = path->depth, .ahead = 1,
                              .backward = path->backward};
    bool opened = path->depth >= 1 && path->depth <= BTREE_MAX_DEPTH;
    for (unsigned level = 0; opened && level < path->depth; level++) {
        struct cursor_level *here = &cursor->levels[level];
        opened = read_level(cursor, level, path->pages[level]);
        if (!opened)
            break;
        if (level + 1 == path->depth) {
            here->at = (int)path->at + (path->backward ? -1 : 1);
            break;
        }
        while (here->at <= here->page.cells &&
               btree_child(&here->page, (unsigned)here->at) != path->pages[level + 1])
            here->at++;
        opened = here->at <= here->page.cells;
    }
    cursor->level = path->depth;
    if (!opened)
        cursor_close(cursor);
    return opened;
}

void cursor_close(struct cursor *cursor)
{
    for (unsigned level = 0; level < BTREE_MAX_DEPTH; level++) {
        free(cursor->levels[level].bytes);
        cursor->levels[level].bytes = NULL;
    }
    cursor->level = 0;
}

/* Requests the child that is about to be entered, and those that come after it. */
static void fetch_children(struct cursor *cursor, struct cursor_level *parent)
{
    uint32_t wanted[CURSOR_MAX_AHEAD];
    unsigned n = 0, most = cursor->ahead < CURSOR_MAX_AHEAD ? cursor->ahead : CURSOR_MAX_AHEAD;
    int step = cursor->backward ? -1 : 1;
    if (parent->fetched > 0) {
        parent->fetched--;
        return;
    }
    for (int child = parent->at; n < most && child >= 0 && child <= parent->page.cells;
         child += step) {
        uint32_t number = btree_child(&parent->page, (unsigned)child);
        if (number == 0)
            break;
        wanted[n++] = number;
    }
    if (n > 1)
        cursor->pages->fetch(cursor->pages->context, wanted, n);
    parent->fetched = (int)n - 1;
}

/* Enters child `at` of the cursor's page, and returns it as an item. */
static bool descend(struct cursor *cursor, struct item *item)
{
    struct cursor_level *parent = &cursor->levels[cursor->level - 1];
    struct cursor_level *child = parent + 1;
    uint32_t number = btree_child(&parent->page, (unsigned)parent->at);
    bool leaf = cursor->level + 1 == cursor->depth;
    parent->descend = false;
    if (leaf && cursor->skim) {
        *item = (struct item){.page = number, .leaf = true};
        return number != 0;
    }
    fetch_children(cursor, parent);
    if (number == 0 || !read_level(cursor, cursor->level, number)) {
        cursor->level = 0;
        return false;
    }
    int last = child->page.cells - (leaf ? 1 : 0);
    child->at = cursor->backward ? last : 0;
    child->fetched = 0;
    child->descend = !leaf;
    cursor->level++;
    *item = (struct item){.page = number, .leaf = leaf};
    return true;
}

/* The row that the entry in cell `at` refers to. False if it has no rowid. */
static bool entry(const struct cursor_level *level, int at, struct item *item)
{
    *item = (struct item){.row = true};
    return btree_index_rowid(&level->page, (unsigned)at, &item->rowid);
}

bool cursor_next(struct cursor *cursor, struct item *item)
{
    while (cursor->level > 0) {
        struct cursor_level *here = &cursor->levels[cursor->level - 1];
        if (cursor->level == cursor->depth) {
            if (here->at >= 0 && here->at < here->page.cells) {
                int at = here->at;
                here->at += cursor->backward ? -1 : 1;
                if (entry(here, at, item))
                    return true;
            } else {
                cursor->level--;
            }
        } else if (here->descend) {
            return descend(cursor, item);
        } else if (cursor->backward ? here->at > 0 : here->at < here->page.cells) {
            /* After a child comes the entry between it and the next child. */
            int between = cursor->backward ? here->at - 1 : here->at;
            here->at += cursor->backward ? -1 : 1;
            here->descend = true;
            if (entry(here, between, item))
                return true;
        } else {
            cursor->level--;
        }
    }
    return false;
}
