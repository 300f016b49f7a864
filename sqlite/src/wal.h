/* A write-ahead log: which pages a read transaction finds in it, and where.
 *
 * Purpose: in WAL mode the newest bytes of a page may be in a frame of the log, and not in the database file.
 * SQLite looks that up in the wal-index, which its connections share as the file DATABASE-shm; so do we.
 * Invariant: a view is what SQLite itself goes by. While the transaction lasts, no frame of it is
 * overwritten: a log begins anew only when nobody reads it.
 * Data flow: the wal-index in; views, and frames for page numbers, out. The layout is that of "WAL-mode
 * File Format" in SQLite's documentation. */
#ifndef FOREREAD_WAL_H
#define FOREREAD_WAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    WAL_HEADER_BYTES = 32,       /* of the log */
    WAL_FRAME_HEADER_BYTES = 24, /* in front of each page */
    WAL_INDEX_BLOCK = 32768,     /* bytes of the wal-index, as it is mapped */
    WAL_INDEX_HEADER_BYTES = 136,
    WAL_MOST_FRAMES = 1 << 18, /* of a view that is looked into: its map takes 4 MiB */
};

/* What one read transaction sees of the log. */
struct wal_view {
    enum {
        WAL_NONE,    /* there is no log */
        WAL_KNOWN,   /* frames `first` to `last`; none when `first` is beyond `last` */
        WAL_UNKNOWN, /* there is a log, and no telling what is seen of it */
    } kind;
    uint32_t first, last; /* frames, from 1 */
    uint32_t page_size;   /* bytes */
    uint8_t salt[8];      /* of this log; another one for each time it begins anew */
};

/* The view of a transaction that begins while this is the header of the wal-index. */
struct wal_view wal_view_parse(const uint8_t header[WAL_INDEX_HEADER_BYTES]);

/* In which block of the wal-index a frame (from 1) is listed. */
uint32_t wal_index_block(uint32_t frame);

/* The page a frame holds; `block` is that of wal_index_block. */
uint32_t wal_index_page(const uint8_t *block, uint32_t frame);

/* Where the page in a frame begins in the log, in bytes. */
uint64_t wal_offset(uint32_t frame, uint32_t page_size);

/* The frame whose page is read, all of it, by this read of the log; 0: none. */
uint32_t wal_frame_at(uint64_t offset, uint64_t length);

/* Whether these are the first bytes of the log that a view is of. */
bool wal_is(const uint8_t header[WAL_HEADER_BYTES], const struct wal_view *view);

/* Whether a frame's header says that it holds `page` and is of that log. */
bool wal_frame_is(const uint8_t header[WAL_FRAME_HEADER_BYTES], const struct wal_view *view,
                  uint32_t page);

/* From pages to the frames that hold their newest bytes, for one view. */
struct wal_map {
    struct {
        uint32_t page, frame;
    } *slots;
    uint32_t mask; /* slots less one, which are a power of two */
};

/* Fills a zeroed map. `read` copies bytes of the wal-index. False when it cannot, or when the view is too large
 * or not WAL_KNOWN; the map is then empty. */
bool wal_map_load(struct wal_map *map, const struct wal_view *view,
                  bool (*read)(void *context, uint64_t offset, void *into, size_t length),
                  void *context);

/* The frame with the newest bytes of a page; 0: they are in the database file. */
uint32_t wal_map_find(const struct wal_map *map, uint32_t page);

void wal_map_free(struct wal_map *map);

#endif
