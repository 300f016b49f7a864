/*
 * calls.c - the counted calls of the program's threads.
 *
 * The common one, which stores a counter, is in the header. No call waits for the prefetch process or changes errno.
 */
#include "calls.h"

#include "counter.h"
#include "lane.h"
#include "need.h"
#include "process.h"
#include "program.h"
#include "threads.h"

/* The calling thread's own state. */
static _Thread_local struct {
    /* 0 in a thread that was not made by foreread_pthread_create() or given a path by foreread_thread_begin(): it
     * does not count. */
    uint64_t path;
    /* Number of threads that it has made. */
    uint64_t made;
} self;

void calls_begin(void) {
    self.path = MAIN_PATH;
    foreread_counter = &counter_unknown;
    /* Reads before main are not counted. */
    foreread_left = FOREREAD_CHARACTERS;
}

void calls_begin_thread(uint64_t path) {
    self.path = path;
}

void calls_forget(void) {
    foreread_counter = &counter_unknown;
}

bool calls_count(void) {
    return self.path != 0;
}

uint64_t calls_next_path(void) {
    return thread_path(self.path, self.made + 1);
}

void calls_made_thread(void) {
    self.made++;
}

/* Called at a thread's first counted call. */
static struct foreread_counter *find_counter(void) {
    struct shared *shared = program_shared();
    struct shared_lane *lane = shared != NULL ? shared_lane(shared, self.path) : NULL;
    return lane != NULL ? &lane->counter : &counter_nobody;
}

static void ring(struct shared *shared) {
    __atomic_store_n(&foreread_counter->wake_at, UINT64_MAX, __ATOMIC_RELAXED);
    if (shared == NULL)
        return;
    if (!need_is_open(shared)) {
        atomic_fetch_add(&shared->bell, 1);
        shared_wake(&shared->bell);
    } else if (self.path == MAIN_PATH) {
        need_ask(shared, foreread_counter);
    } else {
        need_found(shared);
    }
}

/* The same as foreread_calls() in the header. */
static void count(unsigned n) {
    struct foreread_counter *counter = foreread_counter;
    n += FOREREAD_CHARACTERS - foreread_left;
    foreread_left = FOREREAD_CHARACTERS;
    counter->calls += n;
    if (counter->calls >= counter->wake_at)
        foreread_ring(n);
}

void foreread_ring(unsigned n) {
    /* Code of the program that the prefetch thread runs unchanged. */
    if (process_is_prefetch()) {
        lane_calls(n);
        return;
    }
    struct shared *shared = program_shared();
    if (foreread_counter == &counter_unknown) {
        foreread_counter = find_counter();
        if (shared != NULL && foreread_counter != &counter_nobody && need_is_open(shared))
            ring(shared);
        count(n);
    } else {
        ring(shared);
    }
}

void foreread_characters(void) {
    count(0);
}

struct foreread_counter *foreread_pause(void) {
    struct foreread_counter *counter = foreread_counter;
    if (foreread_left != FOREREAD_CHARACTERS)
        foreread_characters();
    foreread_counter = &counter_nobody;
    return counter;
}

void foreread_resume(struct foreread_counter **counter) {
    foreread_left = FOREREAD_CHARACTERS;
    foreread_counter = *counter;
}

void calls_count_last(void) {
    if (foreread_left != FOREREAD_CHARACTERS)
        foreread_characters();
}

void calls_write_down(const struct trace_seen *read) {
    unsigned owed = foreread_owed;
    foreread_owed -= owed > 0;
    uint64_t ahead = (uint64_t)FOREREAD_CHARACTERS - foreread_left - owed;
    struct shared *shared = program_shared();
    if (process_is_prefetch()) {
        if (lane_self != NULL)
            trace_observed(lane_self->path, atomic_load(&lane_self->next_id) + ahead, read);
    } else if (shared != NULL && self.path != 0 && foreread_counter != &counter_nobody) {
        uint64_t id = (foreread_counter == &counter_unknown ? 0 : foreread_counter->calls) + ahead;
        trace_add(TRACE_PROGRAM, self.path, id, read);
        struct shared_lane *lane = shared_lane(shared, self.path);
        if (lane != NULL)
            trace_follow((size_t)(lane - shared->lanes), id);
    }
}

uint64_t foreread_thread_path(void) {
    if (process_is_prefetch())
        return threads_path();
    return program_shared() != NULL && self.path != 0 ? thread_path(self.path, ++self.made) : 0;
}

void foreread_thread_begin(uint64_t path) {
    if (process_is_prefetch())
        threads_begin(path);
    else
        self.path = path;
}

void foreread_thread_end(void) {
    if (process_is_prefetch())
        threads_end();
    else
        calls_count_last();
}

void foreread_thread_leave(void) {
    if (process_is_prefetch())
        threads_leave();
    else
        calls_count_last();
}
