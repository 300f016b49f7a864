/* A write-ahead log: the pages in it that a read transaction sees, and their places.
 *
 * Purpose: in WAL mode the newest version of a page may be in a frame of the log, and not in the database file.
 * SQLite finds the frame by the wal-index, which its connections share as the file DATABASE-shm. So does this
 * code.
 * Invariant: a view is that of SQLite itself. While the transaction lasts, no frame of it is overwritten: a log
 * starts anew only if no transaction reads it.
 * Data flow: the wal-index in; views, and frames for page numbers, out. The layout is that of "WAL-mode
 * File Format" in SQLite's documentation. */
#ifndef FOREREAD_WAL_H
#define FOREREAD_WAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    WAL_HEADER_BYTES = 32,       /* header of the log */
    WAL_FRAME_HEADER_BYTES = 24, /* header in front of each page */
    WAL_INDEX_BLOCK = 32768,     /* bytes of a block, in which the wal-index is mapped */
    WAL_INDEX_HEADER_BYTES = 136,
    WAL_MOST_FRAMES = 1 << 18, /* limit of frames in a view; its map takes 4 MiB */
};

/* The part of the log that a read transaction sees. */
struct wal_view {
    enum {
        WAL_NONE,    /* there is no log */
        WAL_KNOWN,   /* frames `first` to `last`; none if `first` is beyond `last` */
        WAL_UNKNOWN, /* there is a log, but the visible part is unknown */
    } kind;
    uint32_t first, last; /* frames, from 1 */
    uint32_t page_size;   /* bytes */
    uint8_t salt[8];      /* identifies this log; changes each time it starts anew */
};

/* The view of a transaction that begins while the wal-index has this header. */
struct wal_view wal_view_parse(const uint8_t header[WAL_INDEX_HEADER_BYTES]);

/* The block of the wal-index that lists a frame (from 1). */
uint32_t wal_index_block(uint32_t frame);

/* The page in a frame; `block` is that of wal_index_block. */
uint32_t wal_index_page(const uint8_t *block, uint32_t frame);

/* The offset of a frame's page in the log, in bytes. */
uint64_t wal_offset(uint32_t frame, uint32_t page_size);

/* The frame whose whole page is read by this read of the log; 0 if there is none. */
uint32_t wal_frame_at(uint64_t offset, uint64_t length);

/* True if these are the first bytes of the log of this view. */
bool wal_is(const uint8_t header[WAL_HEADER_BYTES], const struct wal_view *view);

/* True if this is the header of a frame with `page`, in the log of this view. */
bool wal_frame_is(const uint8_t header[WAL_FRAME_HEADER_BYTES], const struct wal_view *view,
                  uint32_t page);

/* The frames with the newest versions of pages, in one view. */
struct wal_map {
    struct {
        uint32_t page, frame;
    } *slots;
    uint32_t mask; /* the number of slots, a power of two, minus one */
};

/* Fills a zeroed map. `read` copies bytes of the wal-index. False if that fails, or if the view is too large or not
 * WAL_KNOWN; the map is empty then. */
bool wal_map_load(struct wal_map *map, const struct wal_view *view,
                  bool (*read)(void *context, uint64_t offset, void *into, size_t length),
                  void *context);

/* The frame with the newest version of a page; 0 if that is in the database file. */
uint32_t wal_map_find(const struct wal_map *map, uint32_t page);

void wal_map_free(struct wal_map *map);

#endif
