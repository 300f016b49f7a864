/* queue.c - the lanes and their queues (AASFP, section 5.1). */
#include "queue.h"

#include <stdio.h>
#include <stdlib.h>

#include "counter.h"
#include "process.h"
#include "raw.h"
#include "residency.h"
#include "trace.h"

/* Memory for pages fetched by lanes after the first, in bytes. The first lane may use most of the free memory. */
#define LATER_BUDGET (UINT64_C(64) << 20)

_Thread_local struct lane *lane_self;

static _Atomic(struct lane *) all;
/* Number of prefetch threads that run or will run, from the beginning that of main. */
static _Atomic int running = 1;
static uint64_t size = 65536;
/* Size of the ring of call IDs, a power of two: the queue, and held reads in addition. */
static uint64_t ring = 2 * 65536;

struct lane *lanes(void) {
    return atomic_load(&all);
}

void lanes_set_size(uint64_t entries) {
    size = entries < UINT64_C(1) << 30 ? entries : UINT64_C(1) << 30;
    for (ring = 1; ring < size + HELD;)
        ring *= 2;
}

uint64_t lanes_size(void) {
    return size;
}

bool lanes_add(uint64_t path) {
    struct lane *lane = calloc(1, sizeof *lane);
    if (lane == NULL)
        return false;
    lane->path = path;
    lane->thread = pthread_self();
    pthread_mutex_init(&lane->lock, NULL);
    pthread_cond_init(&lane->room, NULL);
    lane->next = atomic_load(&all);
    while (!atomic_compare_exchange_weak(&all, &lane->next, lane))
        ;
    lane_self = lane;
    trace_begun();
    process_ring();
    return true;
}

bool lane_is_ready(const struct lane *lane) {
    return lane->ids != NULL;
}

/* Creates the client and the queue; true if both exist. */
static bool make_ready(struct lane *lane) {
    if (lane_is_ready(lane))
        return true;
    if (!library_get())
        process_fail("without libforeread");
    foreread_options options = {
        .struct_size = sizeof options,
        .budget = lane->path == MAIN_PATH ? 0 : LATER_BUDGET,
        .capacity = ring,
        /* Files that the program has closed must not stay open here. */
        .flags = FOREREAD_PASSES | FOREREAD_BRIEF,
        .process = (uint64_t)process_program(),
    };
    if (lane->client == NULL && library.register_client(&lane->client, &options, NULL, NULL) != 0) {
        lane->client = NULL;
        return false;
    }
    lane->ids = malloc(ring * sizeof *lane->ids);
    return lane_is_ready(lane);
}

/* The file's handle in the lane's client, or -1. */
static int handle_of(struct lane *lane, const struct file *file, int fd) {
    size_t number = file_number(file);
    if (number >= lane->handles_known) {
        size_t known = number * 2 + 16;
        int *grown = realloc(lane->handles, known * sizeof *grown);
        if (grown == NULL)
            return -1;
        for (size_t n = lane->handles_known; n < known; n++)
            grown[n] = 0;
        lane->handles = grown;
        lane->handles_known = known;
    }
    if (lane->handles[number] == 0) {
        char path[32];
        snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
        int handle = library.register_file(lane->client, path);
        if (handle >= 0 && library.register_region(lane->client, handle, 0, UINT64_MAX) < 0)
            handle = -1;
        lane->handles[number] = handle < 0 ? -1 : handle;
    }
    return lane->handles[number];
}

void lane_flush(struct lane *lane) {
    if (lane->batched == 0)
        return;
    /* The program may have ended this process, and given up rights that the process still has. */
    if (process_is_over() && process_report() < 0)
        process_leave();
    size_t done = 0;
    while (done < lane->batched) {
        int64_t taken = library.request_prefetching(lane->client, lane->batch + done,
                                                    lane->batched - done, FOREREAD_APPEND);
        if (taken <= 0)
            /* The list has room for the whole queue, so the library has ended. */
            break;
        done += (size_t)taken;
    }
    lane->batched = 0;
}

uint64_t lane_id(const struct lane *lane, uint64_t ordinal) {
    return lane->ids[ordinal & (ring - 1)];
}

/* The thread has announced a read: it does not merely read in order with the program. */
void lane_foresees(struct lane *lane, uint64_t id) {
    lane->hold.fetched = 0;
    lane->hold.fetched_from = id;
    lane->behind_in_order = 0;
}

void lane_push(struct lane *lane, const struct reading *reading) {
    if (shared_calls(lane->shared) > reading->id) {
        lane->expired++;
        return;
    }
    /* Until the first read that is not in memory, a client has nothing to do. From then on the library checks by
     * itself. */
    if (!lane_is_ready(lane) && is_resident(reading->fd, reading->offset, reading->bytes)) {
        lane->resident++;
        lane_foresees(lane, reading->id);
        return;
    }
    int handle = make_ready(lane) ? handle_of(lane, reading->file, reading->fd) : -1;
    if (handle < 0) {
        lane->refused++;
        return;
    }
    lane_foresees(lane, reading->id);
    lane->ids[lane->pushed++ & (ring - 1)] = reading->id;
    lane->batch[lane->batched++] =
        (foreread_entry){.fd = handle, .offset = reading->offset, .length = reading->bytes};
    if (lane->first_ns == 0)
        lane->first_ns = clock_ns(CLOCK_MONOTONIC);
    if (lane->batched == BATCH)
        lane_flush(lane);
}

void lanes_expect(int more) {
    atomic_fetch_add(&running, more);
}

bool lanes_run(void) {
    return atomic_load(&running) > 0;
}

void lane_finish(struct lane *lane, const char *why) {
    /* The thread's last characters, which the program counts at its end, too. */
    atomic_fetch_add(&lane->next_id, FOREREAD_CHARACTERS - foreread_left);
    foreread_left = FOREREAD_CHARACTERS;
    atomic_store(&lane->cpu_ns, clock_ns(CLOCK_THREAD_CPUTIME_ID));
    const char *none = NULL;
    if (atomic_compare_exchange_strong(&lane->ended, &none, why)) {
        atomic_fetch_sub(&running, 1);
        if (lane->shared != NULL)
            trace_reached((size_t)(lane->shared - process_shared()->lanes), UINT64_MAX);
        trace_ended();
    }
    /* The watcher hands over the remaining reads. */
    process_ring();
}

void lane_end(const char *why) {
    /* A failure of libforeread's threads or of the watcher would stop everything. */
    if (lane_self == NULL)
        process_leave();
    lane_finish(lane_self, why);
    /* Not pthread_exit(): the slice's handlers for the thread's end would run, and may be the cause of the failure. */
    for (;;)
        raw_call(SYS_exit, 0);
}

bool lane_retire(struct lane *lane) {
    pthread_mutex_lock(&lane->lock);
    bool over = atomic_load(&lane->ended) != NULL && lane->hold.count == 0 && lane->passed == lane->pushed;
    pthread_mutex_unlock(&lane->lock);
    if (over && !lane->retired) {
        lane->retired = true;
        lane->stats.struct_size = sizeof lane->stats;
        /* A library that has failed reports the figures that it had. */
        if (lane->client != NULL)
            library.finish_client(lane->client, &lane->stats);
        lane->client = NULL;
    }
    return over;
}
