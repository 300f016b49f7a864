/*
 * queue.h - the lanes: the state of each prefetch thread, its queue, and the list from which libforeread fetches.
 *
 * Invariant: entries of the queue are entries of the client's list, with the same ordinals. The queue knows the call
 * ID of each: several reads of a page become one entry, and a read that comes too late becomes none.
 */
#ifndef QUEUE_H
#define QUEUE_H

#include "library.h"
#include "registry.h"
#include "shared.h"

/* Number of free entries at which a prefetch thread that found the queue full continues (AASFP, section 5.1). */
#define ROOM 64
/* Most entries handed over at once. */
#define BATCH 64
/* Most reads on hold. */
#define HELD 1024
/* Number of pages remembered as recently loaded: 16 MiB. A power of two. */
#define RECENT 4096
/* Number of files whose streams are distinguished. */
#define STREAMS 16

/* Reasons for a wait of a prefetch thread, as reported. */
enum wait { WAIT_POINT, WAIT_MESSAGE, WAIT_ROOM, WAIT_DATA, WAITS };

/* A read. */
struct reading {
    uint64_t id;
    struct file *file;
    int fd;
    uint64_t offset;
    uint64_t bytes;
};

/* Reads of a file of which each begins where the last ended, or a little further. */
struct stream {
    struct file *file;
    uint64_t end;
    /* Bytes, gaps included. */
    uint64_t run;
    uint64_t used_at;
    /* Held readings before this index are not of this stream. */
    size_t first;
};

/* Undecided reads, oldest first, each with its stream's number. */
struct hold {
    struct stream streams[STREAMS];
    struct reading readings[HELD];
    unsigned char in_stream[HELD];
    size_t count;
    int64_t since;
    /* Reads left to the kernel. */
    uint64_t left;
    /* Bytes that the thread has read for itself, in order and without an announcement in between, and the call at
     * which they begin. */
    uint64_t fetched;
    uint64_t fetched_from;
};

struct lane {
    struct lane *next;
    /* The path of the program's thread, and the number of threads that it has made. */
    uint64_t path;
    uint64_t made;
    /* The counter that the computation thread writes; NULL until the first call. */
    struct shared_lane *shared;
    pthread_t thread;
    /* Why the thread ended; NULL while it runs. And the processor time that it had used by then, in ns. */
    _Atomic(const char *) ended;
    _Atomic int64_t cpu_ns;
    /* The next call's ID. Written by the thread, read by the watcher. */
    _Atomic uint64_t next_id;

    /* Guards all members up to `sleeps`: the thread adds, the watcher passes. */
    pthread_mutex_t lock;
    struct hold hold;
    foreread_client *client;
    /* By a file's number: its handle in the client, 0 if not requested yet, -1 if refused. */
    int *handles;
    size_t handles_known;
    /* The client has been ended: no more entries follow. Its last figures. */
    bool retired;
    foreread_stats stats;
    /* Call IDs of the entries, by ordinal modulo the size; NULL until the lane is ready. */
    uint64_t *ids;
    uint64_t pushed;
    uint64_t passed;
    foreread_entry batch[BATCH];
    size_t batched;
    pthread_cond_t room;
    /* The thread waits for room. */
    bool sleeps;

    /* Pages of the last read; used by the thread alone. */
    struct file *last_file;
    uint64_t last_first, last_end;

    /* Pages of the last loads, by file and page; used by the thread alone. */
    uint64_t recent[RECENT];

    /* The program's calls when last read, and the call at which to read them again; used by the thread alone. */
    uint64_t known_calls, look_at;
    /* Number of successive late calls; the thread's smallest lag, and its time; used by the thread alone. */
    uint64_t late, behind;
    int64_t late_ns;
    /* Stretches in which the thread let the program go first, since its last announcement. */
    unsigned behind_in_order;

    /* For the report. */
    uint64_t expired;
    uint64_t coalesced;
    uint64_t resident;
    uint64_t refused;
    int64_t waited_ns[WAITS];
    int64_t first_ns;

    /* Used by the watcher alone: calls and processor time at its last check. */
    uint64_t seen_calls;
    uint64_t seen_id;
    int64_t seen_cpu_ns;
};

/* The calling thread's lane; NULL in other threads. */
extern _Thread_local struct lane *lane_self;
/* All lanes, newest first. */
struct lane *lanes(void);

/* Number of entries that a lane may be ahead; to be set before the first lane. */
void lanes_set_size(uint64_t entries);
uint64_t lanes_size(void);

/* Adds the calling thread's lane, of this path. */
bool lanes_add(uint64_t path);
/* Adds to the number of prefetch threads that run or will run; lanes_run() is true if there are any. */
void lanes_expect(int more);
bool lanes_run(void);

/* True if the lane has a client, and thereby a session: from its first read that was not in memory. */
bool lane_is_ready(const struct lane *lane);
/* With the lock held. lane_push() adds a reading to the list, in batches, unless it is in memory and the list still
 * empty; lane_flush() ends the batch. */
void lane_push(struct lane *lane, const struct reading *reading);
void lane_flush(struct lane *lane);
/* Call ID of an entry. */
uint64_t lane_id(const struct lane *lane, uint64_t ordinal);

/* With the lock held: the thread has announced this call. Bytes that it fetches for itself are summed from there on. */
void lane_foresees(struct lane *lane, uint64_t id);

/* The thread has ended; `why` is a constant, and the first one is reported. Announced reads are still fetched. */
void lane_finish(struct lane *lane, const char *why);
/* Ends the calling prefetch thread. Safe in a signal handler. */
_Noreturn void lane_end(const char *why);
/* When the thread has ended and the program has read what was announced: ends the lane's client. True if both is so. */
bool lane_retire(struct lane *lane);

#endif
