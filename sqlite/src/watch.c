/* See watch.h. The query's side: the methods that SQLite's reads pass through. */
#include "watch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "library.h"
#include "opening.h"
#include "planner.h"

/* An open WAL. Its sqlite3_file refers to `methods`. */
struct watched_wal {
    sqlite3_io_methods methods; /* must come first */
    const sqlite3_io_methods *real;
    struct watch *watch; /* the watch of its database, which is closed later */
};

/* Locks in the wal-index: the one for writing, and the first of those for reading. */
enum { SHM_WRITE = 0, SHM_FIRST_READ = 3 };

static int watched_close(sqlite3_file *file);

static struct watch *watch_of(sqlite3_file *file)
{
    return (struct watch *)file->pMethods;
}

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Posts a snapshot of the statement's reads to the planner, because `length` is at the alarm. */
static void post(struct watch *watch, uint64_t length)
{
    watch->alarm_at = 2 * length;
    if (atomic_load(&watch->posted) || atomic_load(&watch->aside) ||
        now_ns() < atomic_load(&watch->quiet_until)) {
        watch->alarm_at = length + TRAIL_PATIENCE;
        return;
    }
    watch->snapshot = watch->trail;
    watch->snapshot_view = watch->view;
    watch->snapshot_statement = atomic_load(&watch->statements);
    watch->snapshot_reads = atomic_load(&watch->reads);
    atomic_store(&watch->posted, true);
    planner_wake();
}

/* Notes a page that SQLite has just read. Posts a snapshot, or wakes the planner, if it is time. */
static void look(struct watch *watch, const uint8_t *page, uint32_t number)
{
    uint8_t type = page[0];
    if (btree_may_be(type)) {
        trail_note(&watch->trail, type, number);
        if (type != BTREE_TABLE_LEAF && type != BTREE_INDEX_LEAF)
            return;
    } else {
        trail_note_overflow(&watch->trail, number, btree_next_overflow(page));
        atomic_store_explicit(&watch->reach, watch->trail.reach, memory_order_relaxed);
    }
    uint64_t reads = atomic_load_explicit(&watch->reads, memory_order_relaxed) + 1;
    atomic_store_explicit(&watch->reads, reads, memory_order_relaxed);
    if (atomic_load_explicit(&watch->walking, memory_order_relaxed)) {
        if (reads >= atomic_load_explicit(&watch->wake_at, memory_order_relaxed)) {
            atomic_store(&watch->wake_at, WATCH_WOKEN);
            planner_wake();
        }
        return;
    }
    uint64_t length = trail_length(&watch->trail);
    if (length > watch->alarm_at)
        post(watch, length);
}

/* Notes a read of the database file, if it reads one page, except for the first, which belongs to the schema. */
static void look_at(struct watch *watch, const uint8_t *page, int amount, sqlite3_int64 offset)
{
    if (amount >= 512 && (amount & (amount - 1)) == 0 && offset > 0 && offset % amount == 0)
        look(watch, page, (uint32_t)(offset / amount + 1));
}

/* Reports a read to libforeread, before it is made, so that its pages are not fetched any more. True if it was reported. */
static bool report(struct watch *watch, bool wal, int amount, sqlite3_int64 offset)
{
    if (!atomic_load_explicit(&watch->walking, memory_order_acquire) || offset <= 0)
        return false;
    int fd = wal ? watch->client_wal_fd : watch->client_fd;
    if (fd < 0)
        return false;
    int told = libforeread.reading(watch->client, fd, (uint64_t)offset, (uint64_t)amount);
    if (told < 0)
        atomic_store(&watch->walking, false);
    return told == 0;
}

/* Reports the end of a reported read. Its wait shows libforeread how far ahead to fetch, and how much. */
static void report_done(struct watch *watch, bool wal, int amount, sqlite3_int64 offset,
                        uint64_t began)
{
    libforeread.read_done(watch->client, wal ? watch->client_wal_fd : watch->client_fd,
                       (uint64_t)offset, (uint64_t)amount, now_ns() - began);
}

static int watched_read(sqlite3_file *file, void *into, int amount, sqlite3_int64 offset)
{
    struct watch *watch = watch_of(file);
    bool reported = report(watch, false, amount, offset);
    uint64_t began = reported ? now_ns() : 0;
    int result = watch->real->xRead(file, into, amount, offset);
    if (reported)
        report_done(watch, false, amount, offset, began);
    if (result == SQLITE_OK)
        look_at(watch, into, amount, offset);
    return result;
}

static int watched_fetch(sqlite3_file *file, sqlite3_int64 offset, int amount, void **page)
{
    struct watch *watch = watch_of(file);
    int result = watch->real->xFetch(file, offset, amount, page);
    if (result == SQLITE_OK && *page) {
        atomic_store_explicit(&watch->mapped, true, memory_order_relaxed);
        bool reported = report(watch, false, amount, offset);
        uint64_t began = reported ? now_ns() : 0;
        /* The first access to a mapped page waits for it. */
        look_at(watch, *page, amount, offset);
        if (reported)
            report_done(watch, false, amount, offset, began);
    }
    return result;
}

/* The statement ends when it gives up its shared lock. */
static void end_statement(struct watch *watch)
{
    if (watch->trail.noted == 0)
        return;
    trail_end(&watch->trail);
    watch->alarm_at = TRAIL_PATIENCE;
    atomic_store(&watch->reach, 0);
    atomic_fetch_add(&watch->statements, 1);
    if (atomic_load(&watch->walking))
        planner_wake();
}

static int watched_unlock(sqlite3_file *file, int level)
{
    struct watch *watch = watch_of(file);
    if (level == SQLITE_LOCK_NONE)
        end_statement(watch);
    return watch->real->xUnlock(file, level);
}

/* A block of the wal-index; NULL if SQLite has not mapped it. Never extends the wal-index. */
static const uint8_t *wal_index(const struct watch *watch, uint32_t block)
{
    void volatile *mapped = NULL;
    if (watch->real->xShmMap(watch->file, (int)block, WAL_INDEX_BLOCK, 0, &mapped) != SQLITE_OK)
        return NULL;
    return (const uint8_t *)mapped;
}

/* The view of the transaction that has just locked a read mark. After this SQLite compares the header with its own copy. If
 * they differ, it begins again, with another lock. */
static struct wal_view view_of(const struct watch *watch, int mark)
{
    const uint8_t *index = wal_index(watch, 0);
    struct wal_view view = {.kind = WAL_UNKNOWN};
    if (!index)
        return view;
    view = wal_view_parse(index);
    /* The first mark is for readers that read all pages from the database file. */
    if (mark == SHM_FIRST_READ)
        view.last = 0;
    return view;
}

/* In WAL mode a transaction begins and ends with the lock of a read mark in shared memory. */
static int watched_shm_lock(sqlite3_file *file, int offset, int n, int flags)
{
    struct watch *watch = watch_of(file);
    bool mark = offset >= SHM_FIRST_READ;
    watch->shares_wal = true;
    if (flags == (SQLITE_SHM_UNLOCK | SQLITE_SHM_SHARED) && mark) {
        end_statement(watch);
        watch->view.kind = WAL_NONE;
    }
    int result = watch->real->xShmLock(file, offset, n, flags);
    if (result != SQLITE_OK)
        return result;
    if (flags == (SQLITE_SHM_LOCK | SQLITE_SHM_SHARED) && mark)
        watch->view = view_of(watch, offset);
    else if (flags == (SQLITE_SHM_LOCK | SQLITE_SHM_EXCLUSIVE) && offset == SHM_WRITE)
        /* A writer also reads the frames that it has written itself and not committed. */
        watch->view.kind = WAL_UNKNOWN;
    return result;
}

bool watch_shares_wal(sqlite3_file *file)
{
    return file->pMethods && file->pMethods->xClose == watched_close && watch_of(file)->shares_wal;
}

/* ---- the WAL ---------------------------------------------------------------------------------- */

static int watched_wal_read(sqlite3_file *file, void *into, int amount, sqlite3_int64 offset)
{
    struct watched_wal *wal = (struct watched_wal *)file->pMethods;
    struct watch *watch = wal->watch;
    /* Checkpoints and recoveries also read the log, but without a view. */
    uint32_t frame = watch->view.kind == WAL_KNOWN && offset > 0
                         ? wal_frame_at((uint64_t)offset, (uint64_t)amount)
                         : 0;
    bool reported = frame != 0 && report(watch, true, amount, offset);
    uint64_t began = reported ? now_ns() : 0;
    int result = wal->real->xRead(file, into, amount, offset);
    if (reported)
        report_done(watch, true, amount, offset, began);
    if (result != SQLITE_OK || frame == 0 || frame > watch->view.last)
        return result;
    const uint8_t *index = wal_index(watch, wal_index_block(frame));
    uint32_t page = index ? wal_index_page(index, frame) : 0;
    if (page > 1)
        look(watch, into, page);
    return result;
}

static int watched_wal_close(sqlite3_file *file)
{
    struct watched_wal *wal = (struct watched_wal *)file->pMethods;
    file->pMethods = wal->real;
    atomic_store(&wal->watch->sees_wal, false);
    free(wal);
    return file->pMethods->xClose(file);
}

/* Copies those members that this version of the methods has, and that are known here. */
static void copy_methods(sqlite3_io_methods *methods, const sqlite3_io_methods *real)
{
    methods->iVersion = real->iVersion < 3 ? real->iVersion : 3;
    memcpy((char *)methods + sizeof(int), (const char *)real + sizeof(int),
           (real->iVersion >= 3   ? sizeof *real
            : real->iVersion == 2 ? offsetof(sqlite3_io_methods, xFetch)
                                  : offsetof(sqlite3_io_methods, xShmMap)) -
               sizeof(int));
}

void watch_wal(sqlite3_file *file, const char *path, sqlite3_file *database)
{
    if (!file || !file->pMethods || file->pMethods->xClose == watched_wal_close || !database ||
        !database->pMethods || database->pMethods->xClose != watched_close)
        return;
    struct watch *watch = watch_of(database);
    struct watched_wal *wal = strcmp(path, watch->wal_path) == 0 ? calloc(1, sizeof *wal) : NULL;
    if (!wal)
        return;
    wal->real = file->pMethods;
    wal->watch = watch;
    copy_methods(&wal->methods, wal->real);
    wal->methods.xRead = watched_wal_read;
    wal->methods.xClose = watched_wal_close;
    file->pMethods = &wal->methods;
    atomic_store(&watch->sees_wal, true);
}

/* ---- the database ----------------------------------------------------------------------------- */

static void free_watch(struct watch *watch)
{
    if (watch) {
        free(watch->path);
        free(watch->wal_path);
    }
    free(watch);
}

/* SQLite's own descriptor of the database. SQLite's VFSes for Unix have always stored it behind three pointers. -1 if
 * these bytes are not a descriptor of this file, by its device and inode. A descriptor opened here could not be used,
 * because closing it in the program's table would drop the process's locks on the file. */
static int descriptor_of(const struct watch *watch)
{
    struct stat facts;
    int fd;
    memcpy(&fd, (const char *)watch->file + 3 * sizeof(void *), sizeof fd);
    return fstat(fd, &facts) == 0 && facts.st_dev == watch->device &&
                   facts.st_ino == watch->inode
               ? fd
               : -1;
}

static atomic_uint_fast64_t opening_hints; /* pages */

/* Requests the pages that SQLite will read first. Page 1 is read for that, which SQLite also reads. */
static void hint_opening(const struct watch *watch)
{
    uint8_t bytes[BTREE_HEADER_BYTES];
    struct btree_header header;
    uint32_t pages[OPENING_PAGES];
    if (watch->real->xRead(watch->file, bytes, sizeof bytes, 0) != SQLITE_OK ||
        !btree_header_parse(bytes, &header))
        return;
    uint8_t *first = malloc(header.page_size);
    if (first &&
        watch->real->xRead(watch->file, first, (int)header.page_size, 0) == SQLITE_OK) {
        size_t n = opening_pages(first, &header, pages);
        struct file file = {.fd = n > 0 ? descriptor_of(watch) : -1};
        for (size_t i = 0; file.fd >= 0 && i < n; i++) {
            uint64_t offset = (uint64_t)(pages[i] - 1) * header.page_size;
            if (file_resident(&file, offset, header.page_size))
                continue;
            file_fetch(&file, offset, header.page_size);
            atomic_fetch_add(&opening_hints, 1);
        }
    }
    free(first);
}

uint64_t watch_opening_hints(void)
{
    return atomic_load(&opening_hints);
}

static int watched_close(sqlite3_file *file)
{
    struct watch *watch = watch_of(file);
    file->pMethods = watch->real;
    planner_remove(watch);
    free_watch(watch);
    return file->pMethods->xClose(file);
}

void watch_database(sqlite3_file *file, const char *path)
{
    const sqlite3_io_methods *real = file->pMethods;
    struct stat facts;
    if (!real || real->xClose == watched_close || stat(path, &facts) != 0 ||
        !S_ISREG(facts.st_mode))
        return;
    struct watch *watch = calloc(1, sizeof *watch);
    if (!watch || !(watch->path = strdup(path)) ||
        asprintf(&watch->wal_path, "%s-wal", path) < 0) {
        free_watch(watch);
        return;
    }
    watch->real = real;
    watch->file = file;
    watch->device = facts.st_dev;
    watch->inode = facts.st_ino;
    watch->alarm_at = TRAIL_PATIENCE;
    copy_methods(&watch->methods, real);
    watch->methods.xRead = watched_read;
    watch->methods.xUnlock = watched_unlock;
    watch->methods.xClose = watched_close;
    if (real->iVersion >= 2)
        watch->methods.xShmLock = watched_shm_lock;
    if (real->iVersion >= 3)
        watch->methods.xFetch = watched_fetch;
    hint_opening(watch);
    planner_add(watch);
    file->pMethods = &watch->methods;
}
