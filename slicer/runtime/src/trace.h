/*
 * trace.h - which reads both sides make, written down for whoever compares them.
 *
 * FOREREAD_PREEXEC_TRACE=FOLDER has each program that is to have a prefetch thread make a file there, PID.N, of a head and
 * entries, which program and prefetch process both add to. What the program reads is seen by an observer (slicer/suites/observer.c),
 * preloaded, which the runtime asks for by the name foreread_observe; what the prefetch thread reads, by its calls.
 *
 * Invariant: with the variable unset nothing here costs more than a look at a pointer, and no file is made.
 */
#ifndef TRACE_H
#define TRACE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Entries in a file, which is sparse; what comes after is counted and lost. */
#define TRACE_ROOM (UINT64_C(1) << 20)
/* Reading threads. */
#define TRACE_LANES 64
#define TRACE_MAGIC UINT64_C(0x6563617274657266)

enum trace_kind {
    /* 0 while an entry is not complete. Of the program: a read, and the call ID it will have if it is counted. */
    TRACE_PROGRAM = 1,
    /* Of a prefetch thread: a read; what it looks at of a mapped file; a call that is no read; a call of the program's own
     * code that it runs as it is; the last call was not counted; a read that the observer saw in its process. */
    TRACE_READ,
    TRACE_LOOK,
    TRACE_CALL,
    TRACE_WHOLE,
    TRACE_UNCOUNT,
    TRACE_OBSERVED,
    /* Its end: `id` calls of its own, and `offset` of the program's. */
    TRACE_END,
};

struct trace_entry {
    _Atomic uint32_t kind;
    /* Whether it is of a regular file: dev, ino, offset and bytes are known. */
    uint32_t placed;
    uint64_t path, id;
    uint64_t dev, ino, offset, bytes;
    uint64_t unused;
};

struct trace_head {
    uint64_t magic, room;
    /* Entries there would be in a file without end. */
    _Atomic uint64_t used;
    /* Prefetch threads begun, ended, and asleep until the program goes on; and that there is none. */
    _Atomic uint32_t begun, ended, waiting, failed;
    /* Calls that each prefetch thread has made; all there are, if it has ended. */
    _Atomic uint64_t reached[TRACE_LANES];
    char unused[4096 - 40 - TRACE_LANES * 8];
};

/* A read that the observer has seen in the calling thread. */
struct trace_seen {
    bool placed;
    uint64_t dev, ino, offset, bytes;
};

/* What the observer calls: after a read; before the process ends. */
struct trace_calls {
    void (*seen)(const struct trace_seen *read);
    void (*ends)(void);
};

/* In the program, before the prefetch process is born; and if it is not. */
void trace_begin(const struct trace_calls *calls);
void trace_abandon(void);
/* In the prefetch process, before its calls are filtered. */
void trace_enter(void);

bool trace_is_on(void);
/* A call; `read` is NULL if it is of no file. */
void trace_add(enum trace_kind kind, uint64_t path, uint64_t id, const struct trace_seen *read);
/* The TRACE_READ that the calling thread entered last is made by the runtime itself, between these: which is not observed; and
 * how much was read. */
void trace_reads(void);
void trace_bytes(int64_t bytes);
/* A read that the observer has seen in the prefetch process. */
void trace_observed(uint64_t path, uint64_t id, const struct trace_seen *read);

/* A prefetch thread begins, has made so many calls, ends, waits for the program (1) and goes on (-1); there is to be none. */
void trace_begun(void);
void trace_reached(size_t lane, uint64_t calls);
void trace_ended(void);
void trace_waits(int more);
void trace_failed(void);
/* In the program: sleeps until the prefetch thread has made this call, or cannot without the program; two seconds in all at
 * most. */
void trace_follow(size_t lane, uint64_t id);
/* Sleeps until the prefetch threads have ended, or will not go on without the program: two seconds at most. */
void trace_linger(void);

#endif
