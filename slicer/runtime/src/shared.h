/*
 * shared.h - the only memory that the program and its prefetch process share.
 *
 * One anonymous mapping, made by the program before the prefetch process is cloned.
 *
 * Invariants: the program trusts nothing in it. It writes its counters; the values that it reads (wake_at, the
 * waiting flags, the ring's tail) can at worst make it wake a thread in vain or drop a message. A faulty prefetch
 * thread that overwrites this memory harms only the prefetching. The life page is read-only in the prefetch process,
 * because it holds a link of the C library's own list.
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

/* Number of reading threads per program; further threads have no prefetching. */
#define LANES 64
/* Bytes of the ring of messages; a power of two. */
#define RING (1u << 20)
/* The largest page size of any supported machine. */
#define PAGE_MOST 65536
#define CACHE_LINE 64
/* The path of the program's first thread (see thread_path). */
#define MAIN_PATH 1

/* A reading thread. */
struct shared_lane {
    /* The thread's path, or 0 while the lane is free. */
    _Alignas(CACHE_LINE) _Atomic uint64_t path;
    /* The number of its counted reads, which is its next call ID, and the number at which the program rings the
     * bell. */
    struct foreread_counter counter;
};

/* Messages from the program; see channel.c. */
struct shared_ring {
    /* Total bytes reserved by senders, and total bytes taken out by the receiver. */
    _Alignas(CACHE_LINE) _Atomic uint64_t head;
    _Alignas(CACHE_LINE) _Atomic uint64_t tail;
    /* Set when a message did not fit. */
    _Atomic uint32_t lost;
    /* Number of messages; receivers wait on it. */
    _Atomic uint32_t count;
    _Atomic uint32_t waiting;
    _Alignas(CACHE_LINE) unsigned char bytes[RING];
};

struct shared {
    /* Held by the program's first thread from beginning to end. When that thread ends, executes another program or
     * is killed, the kernel marks the lock and wakes its waiters. */
    union {
        pthread_mutex_t life;
        unsigned char life_page[PAGE_MOST];
    };
    /* Rung by the program when a lane reaches its wake_at. */
    _Alignas(CACHE_LINE) _Atomic uint32_t bell;
    /* Time at which the prefetch process ended by itself, by shared_now_ms(); 0 before. */
    _Atomic uint32_t ended_ms;
    /* State of the decision whether the program waits for its reads (need.c). */
    _Atomic uint32_t need;
    struct shared_lane lanes[LANES];
    /* Number of threads that wait at points, and number of signals of each point. */
    _Atomic uint32_t points_waiting;
    _Atomic uint32_t points[FOREREAD_POINTS];
    struct shared_ring ring;
};

/* The life lock's word, on which the prefetch process waits: FUTEX_OWNER_DIED is set in the end. */
static inline _Atomic uint32_t *life_word(struct shared *shared) {
    return (_Atomic uint32_t *)&shared->life.__data.__lock;
}

/* True if the word shows that the program has ended, has become another one, or has ended the prefetch process. */
static inline bool is_over(uint32_t life) {
    return (life & FUTEX_OWNER_DIED) != 0;
}

/* Number of counted reads of the program's thread. */
static inline uint64_t shared_calls(const struct shared_lane *lane) {
    return __atomic_load_n(&lane->counter.calls, __ATOMIC_ACQUIRE);
}

/* Path of the n-th thread (from 1) that a thread made by foreread_pthread_create() or prefetch_pthread_create(): the
 * same in both processes. Never 0. */
uint64_t thread_path(uint64_t parent, uint64_t n);

/* The lane of a path, claimed if the path is new. NULL if none is free. */
struct shared_lane *shared_lane(struct shared *shared, uint64_t path);

/* The time in ms, never 0; wraps around. */
uint32_t shared_now_ms(void);

/* A clock, in ns. */
static inline int64_t clock_ns(clockid_t clock) {
    struct timespec time;
    clock_gettime(clock, &time);
    return time.tv_sec * INT64_C(1000000000) + time.tv_nsec;
}

/* Waits until *word differs from `value` or the time is over; < 0: no limit. For memory shared between processes. */
void shared_wait(_Atomic uint32_t *word, uint32_t value, int64_t nanoseconds);
/* Wakes all waiters. */
void shared_wake(_Atomic uint32_t *word);

#endif
