/*
 * queue.h - the lanes: what is known of each prefetch thread, its queue, and the list that libforeread fetches by.
 *
 * Invariant: entries of the queue are entries of the client's list, with the same ordinals. The queue knows
 * the call ID of each, so that several reads of a page are one entry, and what comes too late is none.
 */
#ifndef QUEUE_H
#define QUEUE_H

#include "library.h"
#include "registry.h"
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

/* Adds the calling thread's lane, of this path. */
bool lanes_add(uint64_t path);
/* So many more prefetch threads are to be, or fewer; whether there are any. */
void lanes_expect(int more);
bool lanes_run(void);

/* Whether it has a client, and so a session: from its first read that was not in memory. */
bool lane_is_ready(const struct lane *lane);
/* With the lock held: adds to the list, by batches, unless it is in memory and the list empty yet; ends the batch. */
void lane_push(struct lane *lane, const struct reading *reading);
void lane_flush(struct lane *lane);
/* Call ID of an entry. */
uint64_t lane_id(const struct lane *lane, uint64_t ordinal);

/* With the lock held: the thread has announced this call. What it fetches for itself counts from there on. */
void lane_foresees(struct lane *lane, uint64_t id);

/* The thread has ended; `why` is a constant, and the first one given is reported. What it has announced is still fetched. */
void lane_finish(struct lane *lane, const char *why);
/* Ends the calling prefetch thread. Safe in a signal handler. */
_Noreturn void lane_end(const char *why);
/* Once the thread has ended, and the program has read what it announced: ends the lane's client. Whether it is so. */
bool lane_retire(struct lane *lane);

#endif
