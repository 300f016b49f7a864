/* A database as one read transaction sees it: each page in the database file, or in a frame of the WAL.
 *
 * Purpose: `struct pages` on real files.
 * Invariant: as for file.h. What a page is read from is where SQLite reads it from, as long as the transaction
 * lasts; a frame that says it is another page's is refused.
 * Data flow: the database's path and a view of its WAL in; pages, their places and hints out. */
#ifndef FOREREAD_STORE_H
#define FOREREAD_STORE_H

#include "file.h"
#include "pages.h"
#include "wal.h"

struct store {
    struct file database, wal;
    uint32_t page_size;
    struct wal_view view; /* what `map` is of */
    struct wal_map map;
};

/* Where a page's bytes begin, in the database file or in the WAL. */
struct place {
    uint64_t offset;
    bool in_wal;
};

void store_init(struct store *store);

/* False when the path is not, or not any more, the regular file with this device and inode. */
bool store_open(struct store *store, const char *path, dev_t device, ino_t inode);

void store_close(struct store *store);

/* Goes by what a transaction sees, and reads the header it sees. False when that is not known or no database;
 * `header` then tells whether the file is one: its page_size is 0 if not. */
bool store_see(struct store *store, const char *path, const struct wal_view *view,
               struct btree_header *header);

/* False for a page there cannot be. */
bool store_place(const struct store *store, uint32_t page, struct place *place);

/* How many pages the database file has now. */
uint64_t store_pages(const struct store *store);

/* The members of struct pages; the context is the store. */
bool store_read(const struct store *store, uint32_t page, uint8_t *into);
bool store_resident(struct store *store, uint32_t page);
void store_fetch(const struct store *store, uint32_t *pages, size_t n);

#endif
