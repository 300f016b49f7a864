/* The extension: a VFS that watches the databases SQLite opens.
 *
 * Purpose: every read goes to the real VFS first; then its page is looked at.
 * Invariant: SQLite gets what the real VFS gave, from every method, always. Only main databases are
 * watched; journals, WALs and temporary files are the real VFS's own. A watched file is the real
 * VFS's file, in place: only its method table is replaced, by a copy in which five methods are
 * ours, so whatever the real VFS can do (shared memory, mapping, later versions) stays as it is.
 * Data flow: SQLite → real method → trail → planner; while a walk is helped: SQLite → libforeread.
 *
 * Loading also adopts the databases that the loading connection has open already (the sqlite3
 * shell opens its database before it loads anything), and puts a stand-in in the place of the
 * default VFS under the default's own name, so that ATTACH on such a connection finds it. */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "planner.h"

SQLITE_EXTENSION_INIT1

/* A VFS whose files are watched, and the one that does the work. */
struct shim {
    sqlite3_vfs base;
    sqlite3_vfs *real;
};

/* The files of these VFSes are plain files, one page of the database being one page of the file. */
static bool is_plain(const sqlite3_vfs *vfs)
{
    return strncmp(vfs->zName, "unix", 4) == 0;
}

/* ---- a file ----------------------------------------------------------------------------------- */

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

/* The statement has read long enough to be worth a look by the planner. */
static void post(struct watch *watch, uint64_t length)
{
    watch->alarm_at = 2 * length;
    if (atomic_load(&watch->posted) || atomic_load(&watch->aside) ||
        now_ns() < atomic_load(&watch->quiet_until)) {
        watch->alarm_at = length + TRAIL_PATIENCE;
        return;
    }
    watch->snapshot = watch->trail;
    watch->snapshot_statement = atomic_load(&watch->statements);
    watch->snapshot_reads = atomic_load(&watch->reads);
    atomic_store(&watch->posted, true);
    planner_wake();
}

/* Looks at a page that SQLite has just got. */
static void look(struct watch *watch, const uint8_t *page, int amount, sqlite3_int64 offset)
{
    uint8_t type = page[0];
    /* Whole pages only; the first belongs to the schema. */
    if (amount < 512 || (amount & (amount - 1)) != 0 || offset <= 0 || offset % amount != 0)
        return;
    trail_note(&watch->trail, type, (uint32_t)(offset / amount + 1));
    if (type != BTREE_TABLE_LEAF && type != BTREE_INDEX_LEAF)
        return;
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

/* Before a read, so that the engine need not fetch what is being read already; whether it told. */
static bool report(struct watch *watch, int amount, sqlite3_int64 offset)
{
    if (!atomic_load_explicit(&watch->walking, memory_order_acquire) || offset <= 0)
        return false;
    int told =
        foreread_reading(watch->client, watch->client_fd, (uint64_t)offset, (uint64_t)amount);
    if (told < 0)
        atomic_store(&watch->walking, false);
    return told == 0;
}

/* After a read that was reported: whether it waited tells the engine how much stays in memory. */
static void report_done(struct watch *watch, int amount, sqlite3_int64 offset, uint64_t began)
{
    foreread_read_done(watch->client, watch->client_fd, (uint64_t)offset, (uint64_t)amount,
                       now_ns() - began);
}

static int watched_read(sqlite3_file *file, void *into, int amount, sqlite3_int64 offset)
{
    struct watch *watch = watch_of(file);
    bool reported = report(watch, amount, offset);
    uint64_t began = reported ? now_ns() : 0;
    int result = watch->real->xRead(file, into, amount, offset);
    if (reported)
        report_done(watch, amount, offset, began);
    if (result == SQLITE_OK)
        look(watch, into, amount, offset);
    return result;
}

static int watched_fetch(sqlite3_file *file, sqlite3_int64 offset, int amount, void **page)
{
    struct watch *watch = watch_of(file);
    int result = watch->real->xFetch(file, offset, amount, page);
    if (result == SQLITE_OK && *page) {
        bool reported = report(watch, amount, offset);
        uint64_t began = reported ? now_ns() : 0;
        /* The first look is what waits. */
        look(watch, *page, amount, offset);
        if (reported)
            report_done(watch, amount, offset, began);
    }
    return result;
}

/* The statement is over: the shared lock goes. */
static void end_statement(struct watch *watch)
{
    if (watch->trail.noted == 0)
        return;
    trail_end(&watch->trail);
    watch->alarm_at = TRAIL_PATIENCE;
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

/* In WAL mode it is a read mark in shared memory that goes. */
static int watched_shm_lock(sqlite3_file *file, int offset, int n, int flags)
{
    struct watch *watch = watch_of(file);
    if (flags == (SQLITE_SHM_UNLOCK | SQLITE_SHM_SHARED))
        end_statement(watch);
    return watch->real->xShmLock(file, offset, n, flags);
}

static int watched_close(sqlite3_file *file)
{
    struct watch *watch = watch_of(file);
    file->pMethods = watch->real;
    planner_remove(watch);
    free(watch->path);
    free(watch);
    return file->pMethods->xClose(file);
}

/* Puts a watch between SQLite and an open file. Without one, the file works as ever. */
static void watch_file(sqlite3_file *file, const char *path)
{
    const sqlite3_io_methods *real = file->pMethods;
    struct stat facts;
    if (!real || real->xClose == watched_close || !path || stat(path, &facts) != 0 ||
        !S_ISREG(facts.st_mode))
        return;
    struct watch *watch = calloc(1, sizeof *watch);
    if (!watch || !(watch->path = strdup(path))) {
        free(watch);
        return;
    }
    watch->real = real;
    watch->device = facts.st_dev;
    watch->inode = facts.st_ino;
    watch->alarm_at = TRAIL_PATIENCE;
    /* Members of later versions are not there to be copied, and not asked for. */
    watch->methods.iVersion = real->iVersion < 3 ? real->iVersion : 3;
    memcpy((char *)&watch->methods + sizeof(int), (const char *)real + sizeof(int),
           (real->iVersion >= 3   ? sizeof *real
            : real->iVersion == 2 ? offsetof(sqlite3_io_methods, xFetch)
                                  : offsetof(sqlite3_io_methods, xShmMap)) -
               sizeof(int));
    watch->methods.xRead = watched_read;
    watch->methods.xUnlock = watched_unlock;
    watch->methods.xClose = watched_close;
    if (real->iVersion >= 2)
        watch->methods.xShmLock = watched_shm_lock;
    if (real->iVersion >= 3)
        watch->methods.xFetch = watched_fetch;
    planner_add(watch);
    file->pMethods = &watch->methods;
}

/* ---- the VFS ---------------------------------------------------------------------------------- */

static sqlite3_vfs *real_of(sqlite3_vfs *vfs)
{
    return ((struct shim *)vfs)->real;
}

static int shim_open(sqlite3_vfs *vfs, const char *path, sqlite3_file *file, int flags,
                     int *out_flags)
{
    sqlite3_vfs *real = real_of(vfs);
    int result = real->xOpen(real, path, file, flags, out_flags);
    if (result == SQLITE_OK && (flags & SQLITE_OPEN_MAIN_DB) && is_plain(real))
        watch_file(file, path);
    return result;
}

static int shim_delete(sqlite3_vfs *vfs, const char *path, int sync)
{
    return real_of(vfs)->xDelete(real_of(vfs), path, sync);
}

static int shim_access(sqlite3_vfs *vfs, const char *path, int flags, int *result)
{
    return real_of(vfs)->xAccess(real_of(vfs), path, flags, result);
}

static int shim_full_pathname(sqlite3_vfs *vfs, const char *path, int room, char *full)
{
    return real_of(vfs)->xFullPathname(real_of(vfs), path, room, full);
}

static void *shim_dl_open(sqlite3_vfs *vfs, const char *path)
{
    return real_of(vfs)->xDlOpen(real_of(vfs), path);
}

static void shim_dl_error(sqlite3_vfs *vfs, int room, char *message)
{
    real_of(vfs)->xDlError(real_of(vfs), room, message);
}

static void (*shim_dl_sym(sqlite3_vfs *vfs, void *library, const char *symbol))(void)
{
    return real_of(vfs)->xDlSym(real_of(vfs), library, symbol);
}

static void shim_dl_close(sqlite3_vfs *vfs, void *library)
{
    real_of(vfs)->xDlClose(real_of(vfs), library);
}

static int shim_randomness(sqlite3_vfs *vfs, int room, char *bytes)
{
    return real_of(vfs)->xRandomness(real_of(vfs), room, bytes);
}

static int shim_sleep(sqlite3_vfs *vfs, int microseconds)
{
    return real_of(vfs)->xSleep(real_of(vfs), microseconds);
}

static int shim_current_time(sqlite3_vfs *vfs, double *days)
{
    return real_of(vfs)->xCurrentTime(real_of(vfs), days);
}

static int shim_last_error(sqlite3_vfs *vfs, int room, char *message)
{
    return real_of(vfs)->xGetLastError(real_of(vfs), room, message);
}

static int shim_current_time_int64(sqlite3_vfs *vfs, sqlite3_int64 *milliseconds)
{
    return real_of(vfs)->xCurrentTimeInt64(real_of(vfs), milliseconds);
}

static int shim_set_call(sqlite3_vfs *vfs, const char *name, sqlite3_syscall_ptr call)
{
    return real_of(vfs)->xSetSystemCall(real_of(vfs), name, call);
}

static sqlite3_syscall_ptr shim_get_call(sqlite3_vfs *vfs, const char *name)
{
    return real_of(vfs)->xGetSystemCall(real_of(vfs), name);
}

static const char *shim_next_call(sqlite3_vfs *vfs, const char *name)
{
    return real_of(vfs)->xNextSystemCall(real_of(vfs), name);
}

static int register_shim(struct shim *shim, const char *name, sqlite3_vfs *real)
{
    *shim = (struct shim){
        .base =
            {
                .iVersion = real->iVersion < 3 ? real->iVersion : 3,
                .szOsFile = real->szOsFile,
                .mxPathname = real->mxPathname,
                .zName = name,
                .xOpen = shim_open,
                .xDelete = shim_delete,
                .xAccess = shim_access,
                .xFullPathname = shim_full_pathname,
                .xDlOpen = shim_dl_open,
                .xDlError = shim_dl_error,
                .xDlSym = shim_dl_sym,
                .xDlClose = shim_dl_close,
                .xRandomness = shim_randomness,
                .xSleep = shim_sleep,
                .xCurrentTime = shim_current_time,
                .xGetLastError = shim_last_error,
                .xCurrentTimeInt64 = shim_current_time_int64,
                .xSetSystemCall = shim_set_call,
                .xGetSystemCall = shim_get_call,
                .xNextSystemCall = shim_next_call,
            },
        .real = real,
    };
    return sqlite3_vfs_register(&shim->base, 1);
}

/* ---- loading ---------------------------------------------------------------------------------- */

/* Watches what a connection has open already. */
static void adopt(sqlite3 *db)
{
    sqlite3_stmt *databases;
    if (sqlite3_prepare_v2(db, "pragma database_list", -1, &databases, NULL) !=
        SQLITE_OK)
        return;
    while (sqlite3_step(databases) == SQLITE_ROW) {
        const char *name = (const char *)sqlite3_column_text(databases, 1);
        const char *path = name ? sqlite3_db_filename(db, name) : NULL;
        sqlite3_file *file = NULL;
        sqlite3_vfs *vfs = NULL;
        int moved = 0;
        if (!path || !*path ||
            sqlite3_file_control(db, name, SQLITE_FCNTL_VFS_POINTER, &vfs) != SQLITE_OK ||
            !vfs || !is_plain(vfs) ||
            sqlite3_file_control(db, name, SQLITE_FCNTL_FILE_POINTER, &file) != SQLITE_OK ||
            !file || !file->pMethods ||
            sqlite3_file_control(db, name, SQLITE_FCNTL_HAS_MOVED, &moved) != SQLITE_OK || moved)
            continue;
        watch_file(file, path);
    }
    sqlite3_finalize(databases);
}

/* foreread_status(): what this process was helped with, as JSON. */
static void status(sqlite3_context *context, int n, sqlite3_value **values)
{
    struct planner_counts counts = planner_counts();
    char *text = sqlite3_mprintf("{\"walks\":%llu,\"resident\":%llu,\"disclosed\":%llu}",
                                 counts.walks, counts.resident, counts.disclosed);
    (void)n, (void)values;
    sqlite3_result_text(context, text, -1, sqlite3_free);
}

/* The name SQLite derives from the file's. */
__attribute__((visibility("default"))) int
sqlite3_foreread_init(sqlite3 *db, char **message, const sqlite3_api_routines *api);

int sqlite3_foreread_init(sqlite3 *db, char **message, const sqlite3_api_routines *api)
{
    static struct shim named, stand_in;
    SQLITE_EXTENSION_INIT2(api);
    (void)message;
    if (!sqlite3_vfs_find("foreread")) {
        sqlite3_vfs *real = sqlite3_vfs_find(NULL);
        int result = real ? register_shim(&named, "foreread", real) : SQLITE_ERROR;
        /* Found first from here on; then the only one of that name. */
        if (result == SQLITE_OK && is_plain(real)) {
            result = register_shim(&stand_in, real->zName, real);
            sqlite3_vfs_unregister(real);
        }
        if (result != SQLITE_OK)
            return result;
    }
    sqlite3_create_function(db, "foreread_status", 0, SQLITE_UTF8 | SQLITE_DIRECTONLY, NULL, status,
                            NULL, NULL);
    adopt(db);
    return SQLITE_OK_LOAD_PERMANENTLY;
}
