/* See wal.h. The wal-index is in the byte order of the machine, the log itself in big-endian order. */
#include "wal.h"

#include <stdlib.h>
#include <string.h>

enum {
    VERSION = 3007000,
    BLOCK_FRAMES = 4096, /* frames listed in a block; fewer in the first, which begins with the header */
    FIRST_BLOCK_FRAMES = BLOCK_FRAMES - WAL_INDEX_HEADER_BYTES / 4,
    /* Offsets in the header of the wal-index. */
    AT_INITIALISED = 12,
    AT_PAGE_SIZE = 14,
    AT_LAST_FRAME = 16,
    AT_SALT = 32,
    AT_BACKFILLED = 96,
};

static uint32_t native32(const uint8_t *at)
{
    uint32_t value;
    memcpy(&value, at, sizeof value);
    return value;
}

static uint32_t big32(const uint8_t *at)
{
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

struct wal_view wal_view_parse(const uint8_t header[WAL_INDEX_HEADER_BYTES])
{
    struct wal_view view = {.kind = WAL_UNKNOWN};
    uint16_t size;
    memcpy(&size, header + AT_PAGE_SIZE, sizeof size);
    if (native32(header) != VERSION || !header[AT_INITIALISED])
        return view;
    view.kind = WAL_KNOWN;
    view.page_size = size == 1 ? 65536 : size;
    view.last = native32(header + AT_LAST_FRAME);
    /* Frames that were copied to the database already are read there. */
    view.first = native32(header + AT_BACKFILLED) + 1;
    memcpy(view.salt, header + AT_SALT, sizeof view.salt);
    return view;
}

uint32_t wal_index_block(uint32_t frame)
{
    return (frame - 1 + BLOCK_FRAMES - FIRST_BLOCK_FRAMES) / BLOCK_FRAMES;
}

/* The offset of a frame's entry in its block, in bytes. */
static uint32_t index_at(uint32_t frame)
{
    return (frame - 1 + BLOCK_FRAMES - FIRST_BLOCK_FRAMES) % BLOCK_FRAMES * 4;
}

uint32_t wal_index_page(const uint8_t *block, uint32_t frame)
{
    return native32(block + index_at(frame));
}

uint64_t wal_offset(uint32_t frame, uint32_t page_size)
{
    return WAL_HEADER_BYTES + (uint64_t)(frame - 1) * (WAL_FRAME_HEADER_BYTES + page_size) +
           WAL_FRAME_HEADER_BYTES;
}

uint32_t wal_frame_at(uint64_t offset, uint64_t length)
{
    uint64_t before = WAL_HEADER_BYTES + WAL_FRAME_HEADER_BYTES;
    uint64_t step = WAL_FRAME_HEADER_BYTES + length;
    if (length < 512 || (length & (length - 1)) != 0 || offset < before ||
        (offset - before) % step != 0 || (offset - before) / step >= UINT32_MAX)
        return 0;
    return (uint32_t)((offset - before) / step) + 1;
}

bool wal_is(const uint8_t header[WAL_HEADER_BYTES], const struct wal_view *view)
{
    /* The last bit is the byte order of the checksums. */
    return (big32(header) & ~1u) == 0x377f0682 && big32(header + 8) == view->page_size &&
           memcmp(header + 16, view->salt, sizeof view->salt) == 0;
}

bool wal_frame_is(const uint8_t header[WAL_FRAME_HEADER_BYTES], const struct wal_view *view,
                  uint32_t page)
{
    return big32(header) == page && memcmp(header + 8, view->salt, sizeof view->salt) == 0;
}

/* ---- the map: open addressing, at most half full; frames are added in order, so the newest stays --- */

static uint32_t slot_of(const struct wal_map *map, uint32_t page)
{
    uint32_t slot = page * 2654435761u & map->mask;
    while (map->slots[slot].page != 0 && map->slots[slot].page != page)
        slot = (slot + 1) & map->mask;
    return slot;
}

bool wal_map_load(struct wal_map *map, const struct wal_view *view,
                  bool (*read)(void *context, uint64_t offset, void *into, size_t length),
                  void *context)
{
    uint8_t pages[4 * 1024];
    if (view->kind != WAL_KNOWN)
        return false;
    if (view->first > view->last)
        return true;
    if (view->last - view->first >= WAL_MOST_FRAMES)
        return false;
    uint32_t slots = 16;
    while (slots < 2 * (view->last - view->first + 1))
        slots *= 2;
    map->slots = calloc(slots, sizeof *map->slots);
    map->mask = slots - 1;
    for (uint32_t frame = view->first; map->slots && frame <= view->last;) {
        /* Up to the end of the block, and as many as `pages` has room for. */
        uint32_t at = index_at(frame), n = view->last - frame + 1;
        uint32_t room = (BLOCK_FRAMES * 4 - at) / 4;
        n = n < room ? n : room;
        n = n < sizeof pages / 4 ? n : sizeof pages / 4;
        if (!read(context, (uint64_t)wal_index_block(frame) * WAL_INDEX_BLOCK + at, pages, 4 * n)) {
            wal_map_free(map);
            break;
        }
        for (uint32_t i = 0; i < n; i++, frame++) {
            uint32_t page = native32(pages + 4 * i);
            if (page == 0)
                continue;
            uint32_t slot = slot_of(map, page);
            map->slots[slot].page = page;
            map->slots[slot].frame = frame;
        }
    }
    return map->slots != NULL;
}

uint32_t wal_map_find(const struct wal_map *map, uint32_t page)
{
    return map->slots && page != 0 ? map->slots[slot_of(map, page)].frame : 0;
}

void wal_map_free(struct wal_map *map)
{
    free(map->slots);
    *map = (struct wal_map){0};
}
