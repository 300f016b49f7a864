/* A database in the view of one read transaction: each page in the database file, or in a frame of the WAL.
 *
 * Purpose: `struct pages` on real files.
 * Invariant: as for file.h. While the transaction lasts, a page is read from the same place as by SQLite. A frame
 * whose header has another page number is refused.
 * Data flow: the database's path and a view of its WAL in; pages, their places and hints out. */
#ifndef FOREREAD_STORE_H
#define FOREREAD_STORE_H

#include "file.h"
#include "pages.h"
#include "wal.h"

struct store {
    struct file database, wal;
    uint32_t page_size;
    struct wal_view view; /* the view of `map` */
    struct wal_map map;
};

/* The beginning of a page's bytes, in the database file or in the WAL. */
struct place {
    uint64_t offset;
    bool in_wal;
};

void store_init(struct store *store);

/* False if the path does not name the regular file with this device and inode (any more). */
bool store_open(struct store *store, const char *path, dev_t device, ino_t inode);

void store_close(struct store *store);

/* Changes to the view of a transaction, and reads the database header in this view. False if the view is unknown, or if
 * the file is no database; header->page_size is 0 in the second case. */
bool store_see(struct store *store, const char *path, const struct wal_view *view,
               struct btree_header *header);

/* The place of a page. False for page 0. */
bool store_place(const struct store *store, uint32_t page, struct place *place);

/* The number of pages that the database file has now. */
uint64_t store_pages(const struct store *store);

/* Members of struct pages, for a store. */
bool store_read(const struct store *store, uint32_t page, uint8_t *into);
bool store_resident(struct store *store, uint32_t page);
void store_fetch(const struct store *store, uint32_t *pages, size_t n);

#endif
