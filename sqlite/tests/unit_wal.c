/* src/wal.c against logs that SQLite wrote: their own frame headers say which page is where. */
#include <fcntl.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "wal.h"

#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);                \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

struct bytes {
    uint8_t *at;
    size_t length;
};

static struct bytes contents(const char *path, const char *suffix)
{
    char name[256];
    struct bytes bytes = {0};
    snprintf(name, sizeof name, "%s%s", path, suffix);
    int fd = open(name, O_RDONLY);
    CHECK(fd >= 0);
    bytes.length = (size_t)lseek(fd, 0, SEEK_END);
    bytes.at = malloc(bytes.length);
    CHECK(pread(fd, bytes.at, bytes.length, 0) == (ssize_t)bytes.length);
    close(fd);
    return bytes;
}

static bool read_bytes(void *context, uint64_t offset, void *into, size_t length)
{
    const struct bytes *bytes = context;
    if (offset > bytes->length || length > bytes->length - offset)
        return false;
    memcpy(into, bytes->at + offset, length);
    return true;
}

static void run(sqlite3 *db, const char *sql)
{
    CHECK(sqlite3_exec(db, sql, NULL, NULL, NULL) == SQLITE_OK);
}

static uint32_t page_in(const struct bytes *log, const struct wal_view *view, uint32_t frame)
{
    const uint8_t *at = log->at + wal_offset(frame, view->page_size) - WAL_FRAME_HEADER_BYTES;
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

/* The map of every view says what going through the log from its end says. */
static void maps_find_the_newest_frame(const struct bytes *log, struct bytes *index,
                                       struct wal_view view)
{
    const uint32_t whole = view.last;
    const uint32_t views[][2] = {{1, whole}, {1, 1}, {whole, whole}, {whole / 2, whole - 1}, {4062, 4063}};
    for (size_t i = 0; i < sizeof views / sizeof *views; i++) {
        struct wal_map map = {0};
        view.first = views[i][0], view.last = views[i][1];
        if (view.last > whole)
            continue;
        CHECK(wal_map_load(&map, &view, read_bytes, index));
        uint32_t *newest = calloc(1 << 20, sizeof *newest);
        for (uint32_t frame = view.first; frame <= view.last; frame++)
            newest[page_in(log, &view, frame)] = frame;
        for (uint32_t page = 0; page < 1 << 20; page++)
            CHECK(wal_map_find(&map, page) == newest[page]);
        free(newest);
        wal_map_free(&map);
        CHECK(wal_map_find(&map, 1) == 0);
    }
}

static void what_cannot_be_is_refused(const struct bytes *log, struct bytes *index,
                                      const struct wal_view *view)
{
    struct wal_map map = {0};
    struct wal_view other = *view;
    uint8_t header[WAL_INDEX_HEADER_BYTES];
    struct bytes cut = {index->at, WAL_INDEX_HEADER_BYTES};
    CHECK(!wal_map_load(&map, view, read_bytes, &cut) && !map.slots);
    other.kind = WAL_UNKNOWN;
    CHECK(!wal_map_load(&map, &other, read_bytes, index));
    other = *view;
    other.first = 1, other.last = WAL_MOST_FRAMES + 1;
    CHECK(!wal_map_load(&map, &other, read_bytes, index) && !map.slots);
    other.last = 0; /* nothing is in the log */
    CHECK(wal_map_load(&map, &other, read_bytes, index) && !map.slots);
    other = *view;
    other.salt[3] ^= 1;
    CHECK(wal_is(log->at, view) && !wal_is(log->at, &other));
    const uint8_t *frame = log->at + WAL_HEADER_BYTES;
    CHECK(wal_frame_is(frame, view, page_in(log, view, 1)));
    CHECK(!wal_frame_is(frame, view, page_in(log, view, 1) + 1));
    CHECK(!wal_frame_is(frame, &other, page_in(log, view, 1)));
    memcpy(header, index->at, sizeof header);
    header[0] ^= 1;
    CHECK(wal_view_parse(header).kind == WAL_UNKNOWN);
}

static void reads_of_frames_are_told_from_others(uint32_t page_size)
{
    for (uint32_t frame = 1; frame < 10000; frame += 7)
        CHECK(wal_frame_at(wal_offset(frame, page_size), page_size) == frame);
    CHECK(wal_frame_at(0, WAL_HEADER_BYTES) == 0);
    CHECK(wal_frame_at(WAL_HEADER_BYTES, WAL_FRAME_HEADER_BYTES) == 0);
    CHECK(wal_frame_at(WAL_HEADER_BYTES, page_size) == 0);
    CHECK(wal_frame_at(wal_offset(3, page_size) + 1, page_size) == 0);
    CHECK(wal_frame_at(UINT64_MAX, page_size) == 0);
}

int main(void)
{
    static const int sizes[] = {512, 4096, 65536};
    char path[] = "/tmp/foreread-wal-XXXXXX";
    CHECK(close(mkstemp(path)) == 0);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        sqlite3 *db;
        char sql[256];
        unlink(path);
        CHECK(sqlite3_open(path, &db) == SQLITE_OK);
        snprintf(sql, sizeof sql,
                 "pragma page_size=%d; pragma journal_mode=wal; pragma wal_autocheckpoint=0;"
                 "pragma synchronous=off; create table t(id integer primary key, body)",
                 sizes[i]);
        run(db, sql);
        /* Pages again and again; of the small ones more than a block of the index lists. */
        for (int n = 0; n < 24; n++)
            run(db, "with recursive n(i) as (select 1 union all select i + 1 from n where i < 600)"
                    "insert or replace into t select i, hex(randomblob(100)) from n");
        struct bytes log = contents(path, "-wal"), index = contents(path, "-shm");
        struct wal_view view = wal_view_parse(index.at);
        CHECK(view.kind == WAL_KNOWN && view.first == 1 && view.page_size == (uint32_t)sizes[i]);
        CHECK(log.length == wal_offset(view.last, view.page_size) + view.page_size);
        CHECK(sizes[i] > 512 || view.last > 4063);
        for (uint32_t frame = 1; frame <= view.last; frame++)
            CHECK(wal_index_page(index.at + wal_index_block(frame) * WAL_INDEX_BLOCK, frame) ==
                  page_in(&log, &view, frame));
        maps_find_the_newest_frame(&log, &index, view);
        what_cannot_be_is_refused(&log, &index, &view);
        reads_of_frames_are_told_from_others(view.page_size);
        /* All is in the database now, and the log still says what it said. */
        run(db, "pragma wal_checkpoint");
        free(index.at);
        index = contents(path, "-shm");
        CHECK(wal_view_parse(index.at).first == view.last + 1);
        sqlite3_close(db);
        free(log.at);
        free(index.at);
        printf("ok: a log of %d bytes a page\n", sizes[i]);
    }
    unlink(path);
    return 0;
}
