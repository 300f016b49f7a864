/* One open database: what the query's side and the planner's side know of it.
 *
 * Purpose: the meeting point of watch.c, on the threads that run queries, and walk.c, on the planner's.
 * A watched file is the real VFS's file, in place: only its method table is replaced, by a copy in which
 * a few methods are ours, so whatever the real VFS can do (shared memory, mapping) stays as it is.
 * Invariant: the query's side never waits for the planner, except when the database is closed. What
 * both touch is atomic, or handed over by the `posted` flag.
 * Data flow: reads noted in `trail`; a copy posted once a statement has read long enough; the planner
 * answers with `walking`, and from then on the reads are reported to `client`. */
#ifndef FOREREAD_WATCH_H
#define FOREREAD_WATCH_H

#include <stdatomic.h>

#include "foreread.h"
#include "sqlite3ext.h"
#include "store.h"
#include "trail.h"

struct walk;

/* In wake_at: the planner has been woken and has not looked yet. */
#define WATCH_WOKEN UINT64_MAX

struct watch {
    /* What SQLite sees: the real methods but for those that vfs.c replaces. Must come first: the
     * file's pMethods leads back to the watch. */
    sqlite3_io_methods methods;
    const sqlite3_io_methods *real;
    sqlite3_file *file;

    char *path, *wal_path;
    dev_t device;
    ino_t inode;

    /* The query's side; SQLite serialises the calls for one file. */
    struct trail trail;
    uint64_t alarm_at; /* trail length at which the planner is asked */
    struct wal_view view; /* what the transaction sees of the WAL */
    bool shares_wal;      /* it has been in WAL mode, with a wal-index */

    /* Handed over: the query's side writes while `posted` is false, the planner reads while true. */
    struct trail snapshot;
    struct wal_view snapshot_view;
    uint64_t snapshot_statement, snapshot_reads;
    atomic_bool posted;

    atomic_uint_fast64_t statements;  /* how many have ended */
    atomic_uint_fast64_t reads;       /* leaf and overflow pages read so far */
    atomic_uint_fast64_t wake_at;     /* value of `reads` at which to wake the planner */
    atomic_uint_fast64_t quiet_until; /* ns of CLOCK_MONOTONIC: no alarm before */
    atomic_uint reach;                /* overflow pages read of one row, at most, in this statement */
    atomic_bool sees_wal;             /* reads of the WAL come by here */
    atomic_bool mapped;               /* pages are read through a mapping */
    atomic_bool walking;              /* reads are to be reported */
    atomic_bool aside;                /* not a database we understand */
    atomic_bool closing;

    /* Set before `walking` is, for good. */
    foreread_client *client;
    int client_fd; /* pseudo-descriptor */
    int client_wal_fd; /* of the WAL, -1: its pages are not disclosed */
    int client_wal_region;

    /* The planner's. */
    struct watch *next;
    bool more; /* to be done without being woken */
    bool gone; /* served for the last time */
    struct store store;
    struct pages pages;
    struct btree_header header;
    struct schema schema;
    struct walk *walk;
    uint64_t quiet; /* nanoseconds to be quiet for after the next snapshot that is no use */
    uint64_t statement; /* the one whose walk or snapshot is being served */
};

/* Where a database says which version of SQLite's format it needs for writing and for reading: a byte each, and
 * what they are in WAL mode. */
enum { WATCH_VERSIONS_AT = 18, WATCH_WAL_VERSION = 2 };

/* Puts a watch between SQLite and an open database, and asks for what SQLite will read of it first. The file is one of
 * SQLite's VFSes for Unix. Without a watch, it works as ever. */
void watch_database(sqlite3_file *file, const char *path);

/* Pages of databases just opened that this process has asked for; see opening.h. */
uint64_t watch_opening_hints(void);

/* Whether a watched database has been read in WAL mode, with a wal-index in shared memory. */
bool watch_shares_wal(sqlite3_file *file);

/* Lets the watch of `database`, if it has one, see what is read from its WAL. */
void watch_wal(sqlite3_file *file, const char *path, sqlite3_file *database);

#endif
