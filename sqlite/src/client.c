/* See client.h. */
#include "client.h"

#include "library.h"
#include "room.h"

/* What a limited process needs beside the database, in bytes; libforeread takes as much again. */
static const uint64_t OWN_USE = 2u << 20;
/* Bytes of memory that it must be allowed to have: with less nothing was measured. */
static const uint64_t LEAST_LIMIT = 12u << 20;

/* Whether what is fetched ahead stays, and costs nothing that would have stayed without. A database that just
 * fits is read once and is there for all further walks; with libforeread, which uses three quarters of what is
 * free, it would not be. On a modelled disk in a group of 16 MiB, three walks through 12 MiB took 13 s and
 * not 10, through 13 MiB 26 s and not 11; but through 8 MiB 0.5 s and not 1.8, and one through 16 MiB 16 s
 * and not 33. */
static bool has_room(const struct watch *watch)
{
    uint64_t limit = room_limit(), bytes = store_pages(&watch->store) * watch->header.page_size;
    if (limit < LEAST_LIMIT)
        return false;
    uint64_t room = limit - OWN_USE;
    return bytes > room || bytes <= room / 4 * 3;
}

bool client_join(struct watch *watch, uint64_t capacity)
{
    if (watch->client)
        return true;
    watch->client_wal_fd = -1;
    if (!has_room(watch) || !library_load())
        return false;
    foreread_options options = {
        .struct_size = sizeof options,
        .capacity = capacity,
        .flags = FOREREAD_TIMED,
    };
    if (libforeread.register_client(&watch->client, &options, NULL, NULL) < 0) {
        watch->client = NULL;
        return false;
    }
    watch->client_fd = libforeread.register_file(watch->client, watch->path);
    if (watch->client_fd >= 0 &&
        libforeread.register_region(watch->client, watch->client_fd, 0, UINT64_MAX) >= 0)
        return true;
    libforeread.unregister_client(watch->client);
    watch->client = NULL;
    return false;
}

void client_join_wal(struct watch *watch)
{
    int fd = -1;
    if (watch->store.map.slots && atomic_load(&watch->sees_wal))
        fd = libforeread.register_file(watch->client, watch->wal_path);
    if (fd == watch->client_wal_fd)
        return;
    if (watch->client_wal_fd >= 0)
        libforeread.unregister_region(watch->client, watch->client_wal_region);
    watch->client_wal_region =
        fd >= 0 ? libforeread.register_region(watch->client, fd, 0, UINT64_MAX) : -1;
    watch->client_wal_fd = watch->client_wal_region >= 0 ? fd : -1;
}
