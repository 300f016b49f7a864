/* One open database: what the query's side and the planner's side know of it.
 *
 * Purpose: the meeting point of vfs.c, on the threads that run queries, and planner.c, on a thread
 * of its own.
 * Invariant: the query's side never waits for the planner, except when the database is closed. What
 * both touch is atomic, or handed over by the `posted` flag.
 * Data flow: reads noted in `trail`; a copy posted once a statement has read long enough; the planner
 * answers with `walking`, and from then on the reads are reported to `client`. */
#ifndef FOREREAD_WATCH_H
#define FOREREAD_WATCH_H

#include <stdatomic.h>

#include "file.h"
#include "foreread.h"
#include "sqlite3ext.h"
#include "trail.h"

struct walk;

/* In wake_at: the planner has been woken and has not looked yet. */
#define WATCH_WOKEN UINT64_MAX

struct watch {
    /* What SQLite sees: the real methods but for those that vfs.c replaces. Must come first: the
     * file's pMethods leads back to the watch. */
    sqlite3_io_methods methods;
    const sqlite3_io_methods *real;

    char *path;
    dev_t device;
    ino_t inode;

    /* The query's side; SQLite serialises the calls for one file. */
    struct trail trail;
    uint64_t alarm_at; /* trail length at which the planner is asked */

    /* Handed over: the query's side writes while `posted` is false, the planner reads while true. */
    struct trail snapshot;
    uint64_t snapshot_statement, snapshot_reads;
    atomic_bool posted;

    atomic_uint_fast64_t statements;  /* how many have ended */
    atomic_uint_fast64_t reads;       /* leaf pages read so far */
    atomic_uint_fast64_t wake_at;     /* value of `reads` at which to wake the planner */
    atomic_uint_fast64_t quiet_until; /* ns of CLOCK_MONOTONIC: no alarm before */
    atomic_bool walking;              /* reads are to be reported */
    atomic_bool aside;                /* not a database we understand */
    atomic_bool closing;

    /* Set before `walking` is, for good. */
    foreread_client *client;
    int client_fd; /* pseudo-descriptor */

    /* The planner's. */
    struct watch *next;
    bool more; /* to be done without being woken */
    bool gone; /* served for the last time */
    struct file file;
    struct pages pages;
    struct btree_header header;
    struct schema schema;
    struct walk *walk;
    uint64_t quiet; /* nanoseconds to be quiet for after the next snapshot that is no use */
    uint64_t statement; /* the one whose walk or snapshot is being served */
};

#endif
