/*
 * lane.h - one prefetch thread's reads, from its calls to the list that libforeread fetches by.
 *
 * Data flow: lane_read() gives a read its call ID and puts it on hold (hold.c), where it is decided whether the kernel's
 * own read-ahead does for it; what is released goes to the end of the queue and, in batches, to the list of
 * the lane's client (lane.c). The watcher (watch.c) passes what the computation thread has read and tells the client.
 *
 * Invariant: entries of the queue are entries of the client's list, with the same ordinals. The queue knows
 * the call ID of each, so that several reads of a page are one entry, and what comes too late is none.
 */
#ifndef LANE_H
#define LANE_H

#include <time.h>

#include "library.h"
#include "shared.h"

/* Free entries at which a prefetch thread that found the queue full goes on (AASFP, section 5.1). */
#define ROOM 64
/* Entries handed over at once, at most. */
#define BATCH 64
/* Reads on hold, at most. */
#define HELD 1024
/* Pages that are taken to have been looked at a moment ago: 16 MiB. A power of two. */
#define RECENT 4096
/* Files whose streams are told apart. */
#define STREAMS 16

/* What a prefetch thread waits for, as reported. */
enum wait { WAIT_POINT, WAIT_MESSAGE, WAIT_ROOM, WAIT_DATA, WAITS };

struct file;

/* A read. */
struct reading {
    uint64_t id;
    struct file *file;
    int fd;
    uint64_t offset;
    uint64_t bytes;
};

/* Reads of a file that go on where the one before ended, or a little further. */
struct stream {
    struct file *file;
    uint64_t end;
    /* Bytes, gaps included. */
    uint64_t run;
    uint64_t used_at;
    /* None that is on hold before is of it. */
    size_t first;
};

/* What is not decided yet, oldest first, each with its stream's number. */
struct hold {
    struct stream streams[STREAMS];
    struct reading readings[HELD];
    unsigned char in_stream[HELD];
    size_t count;
    int64_t since;
    /* Reads left to the kernel. */
    uint64_t left;
    /* Bytes the thread has read for itself, in order and with nothing announced meanwhile, and the call they begin at. */
    uint64_t fetched;
    uint64_t fetched_from;
};

struct lane {
    struct lane *next;
    /* Which thread of the program this is, and threads it has made. */
    uint64_t path;
    uint64_t made;
    /* NULL until it reads; the counter that the computation thread writes. */
    struct shared_lane *shared;
    pthread_t thread;
    /* Why the thread ended; NULL while it runs. And the processor time it took, in ns, then. */
    _Atomic(const char *) ended;
    _Atomic int64_t cpu_ns;
    /* The next call's ID. Written by the thread, read by the watcher. */
    _Atomic uint64_t next_id;

    /* Guards all up to `sleeps`: the thread adds, the watcher passes. */
    pthread_mutex_t lock;
    struct hold hold;
    foreread_client *client;
    /* By a file's number: its descriptor in the client, 0 if not asked yet, -1 if it is refused. */
    int *handles;
    size_t handles_known;
    /* The client has ended: nothing is to come. What it said last. */
    bool retired;
    foreread_stats stats;
    /* Call IDs of the entries, by ordinal modulo the room for them; NULL until there is one. */
    uint64_t *ids;
    uint64_t pushed;
    uint64_t passed;
    foreread_entry batch[BATCH];
    size_t batched;
    pthread_cond_t room;
    /* The thread waits for it. */
    bool sleeps;

    /* The last read's pages; of the thread alone. */
    struct file *last_file;
    uint64_t last_first, last_end;

    /* Pages of its last loads, by file and page; of the thread alone. */
    uint64_t recent[RECENT];

    /* The program's calls when last looked at, and the call at which to look again; of the thread alone. */
    uint64_t known_calls, look_at;
    /* Calls in a row that came too late; how far behind the thread was when it was least, and when that was; of the
     * thread alone. */
    uint64_t late, behind;
    int64_t late_ns;
    /* Stretches in which it let the program go first, since it announced something. */
    unsigned behind_in_order;

    /* For the report. */
    uint64_t expired;
    uint64_t coalesced;
    uint64_t resident;
    uint64_t refused;
    int64_t waited_ns[WAITS];
    int64_t first_ns;

    /* Of the watcher alone: calls and processor time when it last looked. */
    uint64_t seen_calls;
    uint64_t seen_id;
    int64_t seen_cpu_ns;
};

/* The calling thread's lane; NULL in other threads. */
extern _Thread_local struct lane *lane_self;
/* All lanes, newest first. */
struct lane *lanes(void);

/* Entries a lane may be ahead; before the first lane. */
void lanes_set_size(uint64_t entries);
uint64_t lanes_size(void);

/* Makes the calling thread a prefetch thread, of this path. */
bool lane_begin(uint64_t path);

/* The next call, which is no read. */
void lane_count(void);
/* The next read, whose data the thread has already. */
void lane_had(struct file *file, uint64_t offset, uint64_t bytes);
/* Reads that the program's own code, run by this thread as it is, has made and counted. */
void lane_calls(unsigned n);
/* The next read: these bytes of a file, which `fd` has open. Without a file or bytes, lane_count(). */
void lane_read(struct file *file, int fd, uint64_t offset, uint64_t bytes);
/* The same for what the program looks at in a mapped file. */
void lane_look(struct file *file, int fd, uint64_t offset, uint64_t bytes);
/* Bytes that the program looks at before its next read, which this is not. */
void lane_load(struct file *file, int fd, uint64_t offset, uint64_t bytes);
/* The next read, which the thread makes for itself, of these bytes as far as it is known; in place of
 * lane_wait_begin(). Lets the program go first through what both read in order, and ends the thread if that goes on. */
int64_t lane_fetch(struct file *file, uint64_t offset, uint64_t bytes);
/* After that: how much there was to read. */
void lane_fetched(int64_t bytes);

/* With the lock held: puts a reading on hold, or leaves it to the kernel; releases the readings on hold, to the
 * end of the list. */
void hold_add(struct lane *lane, struct reading reading);
void hold_release(struct lane *lane);
/* With the lock held: what is fetched counts from this call on. */
void hold_begin(struct hold *hold, uint64_t id);
/* With the lock held: enters a read that the thread makes for itself. When a stretch of them was all in order, and
 * where the program is: its calls; else 0. */
uint64_t hold_fetch(struct lane *lane, const struct reading *reading);
/* Whether it has a client, and so a session: from its first read that was not in memory. */
bool lane_is_ready(const struct lane *lane);
/* With the lock held: adds to the list, by batches, unless it is in memory and the list empty yet; ends the batch. */
void lane_push(struct lane *lane, const struct reading *reading);
void lane_flush(struct lane *lane);
/* Call ID of an entry. */
uint64_t lane_id(const struct lane *lane, uint64_t ordinal);

/* Once the thread has ended, and the program has read what it announced: ends the lane's client. Whether it is so. */
bool lane_retire(struct lane *lane);

/* A descriptor is about to be closed: what is on hold may need it to register its file. */
void lane_closes(void);

/* Around everything that may take long: releases what is on hold, and accounts for the time. */
int64_t lane_wait_begin(void);
void lane_wait_end(enum wait what, int64_t since);

/* The watcher. `cpu_ns` is what a prefetch thread may use between two calls. */
bool watch_start(int64_t cpu_ns, void (*at_end)(void));
/* Has it look now. */
void watch_ring(void);
/* Has it tell the clients the last of the program's reads, call at_end(), and end. */
void watch_end(void);

static inline int64_t clock_ns(clockid_t clock) {
    struct timespec time;
    clock_gettime(clock, &time);
    return time.tv_sec * INT64_C(1000000000) + time.tv_nsec;
}

#endif
