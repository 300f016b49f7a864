/* One open database: the state of the query's side and of the planner's side.
 *
 * Purpose: to connect watch.c, on the threads that run queries, with walk.c, on the planner's thread. A
 * watched file is the real VFS's file. Only its table of methods is replaced, by a copy in which a few methods
 * are those of watch.c, so that all features of the real VFS (shared memory, mapping) still work.
 * Invariant: the query's side never waits for the planner, except when the database is closed. Members that
 * both use are atomic, or passed on by the `posted` flag.
 * Data flow: reads are noted in `trail`; a copy is posted when a statement has read long enough; the planner
 * sets `walking`, and from then on the reads are reported to `client`. */
#ifndef FOREREAD_WATCH_H
#define FOREREAD_WATCH_H

#include <stdatomic.h>

#include "foreread.h"
#include "sqlite3ext.h"
#include "store.h"
#include "trail.h"

struct walk;

/* In wake_at: the planner was woken, and has not served the watch yet. */
#define WATCH_WOKEN UINT64_MAX

struct watch {
    /* The methods that SQLite calls: the real ones, except those that watch.c replaces. Must come first: the
     * file's pMethods is cast to the watch. */
    sqlite3_io_methods methods;
    const sqlite3_io_methods *real;
    sqlite3_file *file;

    char *path, *wal_path;
    dev_t device;
    ino_t inode;

    /* The query's side; SQLite serialises the calls for one file. */
    struct trail trail;
    uint64_t alarm_at; /* trail length at which the planner is asked */
    struct wal_view view; /* the transaction's view of the WAL */
    bool shares_wal;      /* the database was in WAL mode, with a wal-index */

    /* The query's side writes these while `posted` is false; the planner reads them while it is true. */
    struct trail snapshot;
    struct wal_view snapshot_view;
    uint64_t snapshot_statement, snapshot_reads;
    atomic_bool posted;

    atomic_uint_fast64_t statements;  /* number of statements that have ended */
    atomic_uint_fast64_t reads;       /* leaf and overflow pages read so far */
    atomic_uint_fast64_t wake_at;     /* value of `reads` at which to wake the planner */
    atomic_uint_fast64_t quiet_until; /* ns of CLOCK_MONOTONIC: no snapshot is posted before */
    atomic_uint reach;                /* most overflow pages read of one row in this statement */
    atomic_bool sees_wal;             /* the WAL is watched */
    atomic_bool mapped;               /* pages are read through a mapping */
    atomic_bool walking;              /* a walk is helped: reads are reported */
    atomic_bool aside;                /* no database, or an encrypted one: left alone */
    atomic_bool closing;

    /* Changed by the planner, only while `walking` is false. */
    foreread_client *client;
    int client_fd; /* pseudo-descriptor */
    int client_wal_fd; /* pseudo-descriptor of the WAL; -1 if its pages are not disclosed */
    int client_wal_region;

    /* The planner's. */
    struct watch *next;
    bool more; /* due without being woken */
    bool gone; /* served for the last time */
    struct store store;
    struct pages pages;
    struct btree_header header;
    struct schema schema;
    struct walk *walk;
    uint64_t quiet; /* ns without snapshots after the next one without a walk to help */
    uint64_t statement; /* the statement whose walk or snapshot is being served */
};

/* The offset in a database of the two bytes with the format's versions for writing and for reading, and their value in
 * WAL mode. */
enum { WATCH_VERSIONS_AT = 18, WATCH_WAL_VERSION = 2 };

/* Puts a watch between SQLite and an open database, and requests the pages that SQLite will read first. The file must
 * belong to one of SQLite's VFSes for Unix. If no watch can be made, the file works as without it. */
void watch_database(sqlite3_file *file, const char *path);

/* Number of pages that this process has requested at the opening of databases; see opening.h. */
uint64_t watch_opening_hints(void);

/* True if a watched database was read in WAL mode, with a wal-index in shared memory. */
bool watch_shares_wal(sqlite3_file *file);

/* Watches the reads of a WAL for the watch of its `database`, if there is one. */
void watch_wal(sqlite3_file *file, const char *path, sqlite3_file *database);

#endif
