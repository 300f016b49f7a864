/* See client.h. */
#include "client.h"

#include "library.h"
#include "room.h"

/* Memory that a process with a limit needs besides the database, in bytes. libforeread needs as much again. */
static const uint64_t OWN_USE = 2u << 20;
/* The lowest limit of memory, in bytes, at which libforeread is used. Lower limits were not measured. */
static const uint64_t LEAST_LIMIT = 12u << 20;

/* True if prefetched pages stay in memory, and displace no pages that would have stayed. Without libforeread, a database
 * that just fits in memory is read once and then stays there for all later walks. With libforeread, which itself
 * needs memory, it would not stay. With a limit of 16 MiB on a modelled disk, walks through 12 and 13 MiB were
 * slower with libforeread, and those through 8 and 16 MiB faster. */
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
