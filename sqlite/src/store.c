/* See store.h. */
#include "store.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

void store_init(struct store *store)
{
    *store = (struct store){.database.fd = -1, .wal.fd = -1};
}

bool store_open(struct store *store, const char *path, dev_t device, ino_t inode)
{
    struct stat facts;
    if (!file_open(&store->database, path, &facts))
        return false;
    if (facts.st_dev == device && facts.st_ino == inode)
        return true;
    file_close(&store->database);
    return false;
}

static void forget_wal(struct store *store)
{
    file_close(&store->wal);
    wal_map_free(&store->map);
    store->view = (struct wal_view){.kind = WAL_NONE};
}

void store_close(struct store *store)
{
    file_close(&store->database);
    forget_wal(store);
}

/* ---- the WAL ---------------------------------------------------------------------------------- */

static bool read_index(void *context, uint64_t offset, void *into, size_t length)
{
    return file_read(context, offset, into, length);
}

static bool same_view(const struct wal_view *a, const struct wal_view *b)
{
    return a->kind == b->kind && a->first == b->first && a->last == b->last &&
           a->page_size == b->page_size && memcmp(a->salt, b->salt, sizeof a->salt) == 0;
}

/* Opens a file beside the database. */
static bool open_beside(struct file *file, const char *path, const char *suffix)
{
    char name[PATH_MAX];
    int length = snprintf(name, sizeof name, "%s%s", path, suffix);
    return length > 0 && (size_t)length < sizeof name && file_open(file, name, NULL);
}

static bool look_into_wal(struct store *store, const char *path, const struct wal_view *view)
{
    struct file index = {.fd = -1};
    uint8_t header[WAL_HEADER_BYTES];
    if (view->kind == WAL_NONE || view->first > view->last)
        return view->kind != WAL_UNKNOWN;
    bool known = open_beside(&store->wal, path, "-wal") &&
                 file_read(&store->wal, 0, header, sizeof header) && wal_is(header, view) &&
                 open_beside(&index, path, "-shm") &&
                 wal_map_load(&store->map, view, read_index, &index);
    file_close(&index);
    return known;
}

/* ---- pages ------------------------------------------------------------------------------------ */

bool store_see(struct store *store, const char *path, const struct wal_view *view,
               struct btree_header *header)
{
    uint8_t bytes[BTREE_HEADER_BYTES];
    struct place first;
    header->page_size = 0;
    if (!file_read(&store->database, 0, bytes, sizeof bytes) || !btree_header_parse(bytes, header))
        return false;
    store->page_size = header->page_size;
    /* In WAL mode the view is unknown if the connection shares no wal-index: then one process has the database to itself. */
    if (header->wal ? view->kind != WAL_KNOWN : view->kind != WAL_NONE)
        return false;
    if (!same_view(view, &store->view)) {
        forget_wal(store);
        if (!look_into_wal(store, path, view)) {
            forget_wal(store);
            return false;
        }
        store->view = *view;
    }
    if (!store_place(store, 1, &first) || !first.in_wal)
        return true;
    return file_read(&store->wal, first.offset, bytes, sizeof bytes) &&
           btree_header_parse(bytes, header) && header->page_size == store->page_size;
}

bool store_place(const struct store *store, uint32_t page, struct place *place)
{
    uint32_t frame = wal_map_find(&store->map, page);
    place->in_wal = frame != 0;
    place->offset = frame != 0 ? wal_offset(frame, store->page_size)
                               : (uint64_t)(page - 1) * store->page_size;
    return page != 0;
}

uint64_t store_pages(const struct store *store)
{
    return file_bytes(&store->database) / store->page_size;
}

bool store_read(const struct store *store, uint32_t page, uint8_t *into)
{
    uint8_t header[WAL_FRAME_HEADER_BYTES];
    struct place place;
    if (!store_place(store, page, &place))
        return false;
    if (!place.in_wal)
        return file_read(&store->database, place.offset, into, store->page_size);
    return file_read(&store->wal, place.offset - sizeof header, header, sizeof header) &&
           wal_frame_is(header, &store->view, page) &&
           file_read(&store->wal, place.offset, into, store->page_size);
}

bool store_resident(struct store *store, uint32_t page)
{
    struct place place;
    return store_place(store, page, &place) &&
           file_resident(place.in_wal ? &store->wal : &store->database, place.offset,
                         store->page_size);
}

void store_fetch(const struct store *store, uint32_t *pages, size_t n)
{
    struct place from = {0};
    uint64_t length = 0;
    btree_sort(pages, n);
    for (size_t i = 0; i < n; i++) {
        struct place place;
        if (!store_place(store, pages[i], &place) || (i > 0 && pages[i] == pages[i - 1]))
            continue;
        if (place.in_wal) {
            file_fetch(&store->wal, place.offset, store->page_size);
        } else if (length > 0 && place.offset == from.offset + length) {
            length += store->page_size;
        } else {
            if (length > 0)
                file_fetch(&store->database, from.offset, length);
            from = place;
            length = store->page_size;
        }
    }
    if (length > 0)
        file_fetch(&store->database, from.offset, length);
}
