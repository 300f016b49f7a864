/*
 * shared.h - the memory that program and prefetch process share, and nothing else.
 *
 * One anonymous mapping, made by the program before the prefetch process is cloned.
 *
 * Invariants: the program trusts nothing in it. It writes its counters, and what it reads (wake_at, the
 * waiting flags, the ring's tail) can at worst make it wake somebody in vain or drop a message; a
 * prefetch thread gone wild that scribbles here harms only the prefetching. The life page is read-only in
 * the prefetch process: it holds a link of the C library's own list.
 */
#ifndef SHARED_H
#define SHARED_H

#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include "../foreread_counter.h"

/* Reading threads of one program; those beyond are not prefetched for. */
#define LANES 64
/* Bytes of the ring of messages; a power of two. */
#define RING (1u << 20)
/* The largest page of any machine this runs on. */
#define PAGE_MOST 65536
#define CACHE_LINE 64
/* The path of the program's first thread (see thread_path). */
#define MAIN_PATH 1

/* One reading thread. */
struct shared_lane {
    /* Which thread: its path, or 0 while the lane is free. */
    _Alignas(CACHE_LINE) _Atomic uint64_t path;
    /* Reads it has made: its call ID; and at which the program rings the bell. */
    struct foreread_counter counter;
};

/* Messages from the program; see channel.c. */
struct shared_ring {
    /* Bytes ever reserved by senders, and ever taken out by the receiver. */
    _Alignas(CACHE_LINE) _Atomic uint64_t head;
    _Alignas(CACHE_LINE) _Atomic uint64_t tail;
    /* A message did not fit. */
    _Atomic uint32_t lost;
    /* Counts messages; receivers wait on it. */
    _Atomic uint32_t count;
    _Atomic uint32_t waiting;
    _Alignas(CACHE_LINE) unsigned char bytes[RING];
};

struct shared {
    /* Held by the program's first thread from beginning to end. When that ends, executes another program or is
     * killed, the kernel marks the lock and wakes who waits for it. */
    union {
        pthread_mutex_t life;
        unsigned char life_page[PAGE_MOST];
    };
    /* Rung by the program when a lane reaches its wake_at. */
    _Alignas(CACHE_LINE) _Atomic uint32_t bell;
    /* When the prefetch process ended by itself, by shared_now_ms(); 0 before. */
    _Atomic uint32_t ended_ms;
    /* Whether the program waits for what it reads (need.c). */
    _Atomic uint32_t need;
    struct shared_lane lanes[LANES];
    /* Times each point was signalled, and whether somebody waits for any. */
    _Atomic uint32_t points_waiting;
    _Atomic uint32_t points[FOREREAD_POINTS];
    struct shared_ring ring;
};

/* The life lock's word, on which the prefetch process waits: it ends with FUTEX_OWNER_DIED set. */
static inline _Atomic uint32_t *life_word(struct shared *shared) {
    return (_Atomic uint32_t *)&shared->life.__data.__lock;
}

/* Whether by that word the program has ended, or is another. */
static inline bool is_over(uint32_t life) {
    return (life & FUTEX_OWNER_DIED) != 0;
}

/* Reads the program's thread has made. */
static inline uint64_t shared_calls(const struct shared_lane *lane) {
    return __atomic_load_n(&lane->counter.calls, __ATOMIC_ACQUIRE);
}

/* Path of the n-th thread (from 1) that a thread made by foreread_pthread_create() or
 * prefetch_pthread_create(): the same in both processes. Never 0. */
uint64_t thread_path(uint64_t parent, uint64_t n);

/* The lane of a path, claimed if it is new. NULL without a free one. */
struct shared_lane *shared_lane(struct shared *shared, uint64_t path);

/* The time in ms, never 0; goes round. */
uint32_t shared_now_ms(void);

/* A clock, in ns. */
static inline int64_t clock_ns(clockid_t clock) {
    struct timespec time;
    clock_gettime(clock, &time);
    return time.tv_sec * INT64_C(1000000000) + time.tv_nsec;
}

/* Waits until *word is not `value` or the time is over; < 0 for no limit. On memory shared by processes. */
void shared_wait(_Atomic uint32_t *word, uint32_t value, int64_t nanoseconds);
/* Wakes all that wait. */
void shared_wake(_Atomic uint32_t *word);

#endif
