/*
 * trace.h - writes down the reads of both sides, so that tests can compare them.
 *
 * With FOREREAD_PREEXEC_TRACE=FOLDER, each program that is to have a prefetch thread makes a file there, PID.N, with
 * a head and entries, to which program and prefetch process both add. The program's reads are seen by a preloaded
 * observer (slicer/suites/observer.c), which the runtime finds by the name foreread_observe; the prefetch thread's
 * reads are known from its calls.
 *
 * Invariant: with the variable unset, everything here costs only a test of a pointer, and no file is made.
 */
#ifndef TRACE_H
#define TRACE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Entries per file, which is sparse. Further entries are counted and lost. */
#define TRACE_ROOM (UINT64_C(1) << 20)
/* Number of reading threads. */
#define TRACE_LANES 64
#define TRACE_MAGIC UINT64_C(0x6563617274657266)

enum trace_kind {
    /* 0 while an entry is incomplete. Of the program: a read, with the call ID that it has if it is counted. */
    TRACE_PROGRAM = 1,
    /* Of a prefetch thread: a read; an access to a mapped file; a call that is no read; a call of the program's own
     * code that the thread runs unchanged; a correction, that the last call was not counted; a read that the
     * observer saw in the prefetch process. */
    TRACE_READ,
    TRACE_LOOK,
    TRACE_CALL,
    TRACE_WHOLE,
    TRACE_UNCOUNT,
    TRACE_OBSERVED,
    /* End of a lane: `id` is the number of its calls, `offset` that of the program's. */
    TRACE_END,
};

struct trace_entry {
    _Atomic uint32_t kind;
    /* True for a regular file: dev, ino, offset and bytes are known. */
    uint32_t placed;
    uint64_t path, id;
    uint64_t dev, ino, offset, bytes;
    uint64_t unused;
};

struct trace_head {
    uint64_t magic, room;
    /* Number of entries, including those that did not fit. */
    _Atomic uint64_t used;
    /* Number of prefetch threads begun, ended, and asleep until the program goes on; set if there is none. */
    _Atomic uint32_t begun, ended, waiting, failed;
    /* Number of calls of each prefetch thread; the maximum if the thread has ended. */
    _Atomic uint64_t reached[TRACE_LANES];
    char unused[4096 - 40 - TRACE_LANES * 8];
};

/* A read that the observer has seen in the calling thread. */
struct trace_seen {
    bool placed;
    uint64_t dev, ino, offset, bytes;
};

/* Functions that the observer calls: after a read, and before the process ends. */
struct trace_calls {
    void (*seen)(const struct trace_seen *read);
    void (*ends)(void);
};

/* To be called in the program, before the birth of the prefetch process, and if the birth fails. */
void trace_begin(const struct trace_calls *calls);
void trace_abandon(void);
/* To be called in the prefetch process, before its calls are filtered. */
void trace_enter(void);

bool trace_is_on(void);
/* Adds a call; `read` is NULL if it is of no file. */
void trace_add(enum trace_kind kind, uint64_t path, uint64_t id, const struct trace_seen *read);
/* Before and after a read that the runtime makes itself for the calling thread's last TRACE_READ: such a read is not
 * observed. `bytes` is the number of bytes read. */
void trace_reads(void);
void trace_bytes(int64_t bytes);
/* Adds a read that the observer has seen in the prefetch process. */
void trace_observed(uint64_t path, uint64_t id, const struct trace_seen *read);

/* Events of a prefetch thread: it begins, has made this many calls, ends, starts (1) or stops (-1) waiting for the
 * program; there will be none. */
void trace_begun(void);
void trace_reached(size_t lane, uint64_t calls);
void trace_ended(void);
void trace_waits(int more);
void trace_failed(void);
/* In the program: sleeps until the prefetch thread has made this call, or cannot without the program; two seconds in
 * all at most. */
void trace_follow(size_t lane, uint64_t id);
/* Sleeps until the prefetch threads have ended, or cannot go on without the program; two seconds at most. */
void trace_linger(void);

#endif
