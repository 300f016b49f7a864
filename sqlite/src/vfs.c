/* The extension: its entry, and a VFS that watches the databases that SQLite opens.
 *
 * Purpose: every database that the process opens by its default VFS, or by vfs=foreread, from now on gets a
 * watch (watch.c).
 * Invariant: every method returns the result of the real VFS. Only main databases and their WALs are
 * watched, not journals and temporary files.
 * Data flow: opens → real VFS → watch_database, watch_wal.
 *
 * Loading also adopts the databases that the loading connection has open already, because the sqlite3
 * shell opens its database first. It replaces the default VFS by a stand-in with the same name, so that
 * ATTACH on such a connection finds the stand-in. */
#include <pthread.h>
#include <string.h>

#include "library.h"
#include "walk.h"

SQLITE_EXTENSION_INIT1

/* A VFS whose files are watched, and the real VFS behind it. */
struct shim {
    sqlite3_vfs base;
    sqlite3_vfs *real;
};

/* The first version of SQLite with sqlite3_database_file_object. */
enum { NAMES_OWNER = 3032000 };

/* True if the files of this VFS are plain files: page n of the database is page n of the file. */
static bool is_plain(const sqlite3_vfs *vfs)
{
    return strncmp(vfs->zName, "unix", 4) == 0;
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
    if (result != SQLITE_OK || !path || !is_plain(real))
        return result;
    if (flags & SQLITE_OPEN_MAIN_DB)
        watch_database(file, path);
    else if ((flags & SQLITE_OPEN_WAL) && sqlite3_libversion_number() >= NAMES_OWNER)
        watch_wal(file, path, sqlite3_database_file_object(path));
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

/* Watches the WAL of an adopted database. SQLite opens a WAL at the first read, and this connection still uses
 * the real VFS, so that a later open would not be watched. So a database in WAL mode is read now, which opens its
 * WAL. The first read would do the same. */
static void adopt_wal(sqlite3 *db, const char *name, const char *path, sqlite3_file *file)
{
    uint8_t versions[2];
    sqlite3_file *wal = NULL;
    if (file->pMethods->xRead(file, versions, sizeof versions, WATCH_VERSIONS_AT) != SQLITE_OK ||
        versions[0] != WATCH_WAL_VERSION || versions[1] != WATCH_WAL_VERSION)
        return;
    char *sql = sqlite3_mprintf("pragma \"%w\".schema_version", name);
    char *wal_path = sqlite3_mprintf("%s-wal", path);
    if (sql && wal_path && sqlite3_exec(db, sql, NULL, NULL, NULL) == SQLITE_OK &&
        sqlite3_file_control(db, name, SQLITE_FCNTL_JOURNAL_POINTER, &wal) == SQLITE_OK &&
        watch_shares_wal(file))
        watch_wal(wal, wal_path, file);
    sqlite3_free(sql);
    sqlite3_free(wal_path);
}

/* Watches the databases that a connection has open already. */
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
        watch_database(file, path);
        adopt_wal(db, name, path, file);
    }
    sqlite3_finalize(databases);
}

/* foreread_status(): counts of this process's walks and hints, as JSON. */
static void status(sqlite3_context *context, int n, sqlite3_value **values)
{
    struct walk_counts counts = walk_counts();
    char *text = sqlite3_mprintf(
        "{\"walks\":%llu,\"resident\":%llu,\"disclosed\":%llu,\"opening\":%llu,\"library\":\"%s\"}",
        counts.walks, counts.resident, counts.disclosed, watch_opening_hints(), library_state());
    (void)n, (void)values;
    sqlite3_result_text(context, text, -1, sqlite3_free);
}

/* The name of the entry, which SQLite derives from the file's name. */
__attribute__((visibility("default"))) int
sqlite3_foreread_init(sqlite3 *db, char **message, const sqlite3_api_routines *api);

/* Registers both VFSes, the first time. */
static int register_shims(void)
{
    static struct shim named, stand_in;
    if (sqlite3_vfs_find("foreread"))
        return SQLITE_OK;
    sqlite3_vfs *real = sqlite3_vfs_find(NULL);
    int result = real ? register_shim(&named, "foreread", real) : SQLITE_ERROR;
    /* The stand-in gets the real VFS's name, which is then unregistered. */
    if (result == SQLITE_OK && is_plain(real)) {
        result = register_shim(&stand_in, real->zName, real);
        sqlite3_vfs_unregister(real);
    }
    return result;
}

int sqlite3_foreread_init(sqlite3 *db, char **message, const sqlite3_api_routines *api)
{
    static pthread_mutex_t loading = PTHREAD_MUTEX_INITIALIZER;
    SQLITE_EXTENSION_INIT2(api);
    (void)message;
    /* Connections on several threads may load at once. A shim over a shim of the same name would call itself for ever. */
    pthread_mutex_lock(&loading);
    int result = register_shims();
    pthread_mutex_unlock(&loading);
    if (result != SQLITE_OK)
        return result;
    sqlite3_create_function(db, "foreread_status", 0, SQLITE_UTF8 | SQLITE_DIRECTONLY, NULL, status,
                            NULL, NULL);
    adopt(db);
    return SQLITE_OK_LOAD_PERMANENTLY;
}
