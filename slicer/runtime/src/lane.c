/* lane.c - call IDs and the queue of one prefetch thread (AASFP, section 5.1). */
#include "lane.h"

#include <stdlib.h>
#include <stdio.h>

#include "files.h"
#include "prefetch.h"

/* A batch is handed over after this long, in ns, however small it is. */
#define PATIENCE 100000
/* Memory for what lanes after the first fetch ahead, in bytes: the first has most of what is free. */
#define LATER_BUDGET (UINT64_C(64) << 20)
#define PAGE_SHIFT 12

_Thread_local struct lane *lane_self;

static _Atomic(struct lane *) all;
static uint64_t size = 65536;

struct lane *lanes(void) {
    return atomic_load(&all);
}

void lanes_set_size(uint64_t entries) {
    for (size = 1; size < entries && size < (UINT64_C(1) << 30);)
        size *= 2;
}

uint64_t lanes_size(void) {
    return size;
}

bool lane_begin(uint64_t path) {
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
    return true;
}

/* Has client, queue and counter; whether all are there. */
static bool is_ready(struct lane *lane) {
    if (lane->ids != NULL)
        return true;
    if (lane->shared == NULL)
        lane->shared = shared_lane(prefetch_shared(), lane->path);
    if (lane->shared == NULL)
        return false;
    foreread_options options = {
        .struct_size = sizeof options,
        .budget = lane->path == MAIN_PATH ? 0 : LATER_BUDGET,
        /* The list counts what is flushed as ahead until it is told. */
        .capacity = size + 2 * BATCH,
    };
    if (lane->client == NULL && library.register_client(&lane->client, &options, NULL, NULL) != 0) {
        lane->client = NULL;
        return false;
    }
    lane->ids = malloc(size * sizeof *lane->ids);
    return lane->ids != NULL;
}

/* The file's descriptor in the lane's client, or -1. */
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
    size_t done = 0;
    while (done < lane->batched) {
        int64_t taken = library.request_prefetching(lane->client, lane->batch + done,
                                                    lane->batched - done, FOREREAD_APPEND);
        if (taken <= 0)
            /* The list has room for all that the queue has, so this is the library's end. */
            break;
        done += (size_t)taken;
    }
    lane->batched = 0;
    lane->flushed_at = clock_ns(CLOCK_MONOTONIC);
}

/* Puts an entry at the end, sleeping while the queue is full. */
static void push(struct lane *lane, uint64_t id, foreread_entry entry) {
    pthread_mutex_lock(&lane->lock);
    if (lane->pushed - lane->passed >= size) {
        uint64_t room = size < ROOM ? size : ROOM;
        int64_t since = clock_ns(CLOCK_MONOTONIC);
        lane_flush(lane);
        while (size - (lane->pushed - lane->passed) < room)
            pthread_cond_wait(&lane->room, &lane->lock);
        lane->waited_ns[WAIT_ROOM] += clock_ns(CLOCK_MONOTONIC) - since;
    }
    lane->ids[lane->pushed++ & (size - 1)] = id;
    lane->batch[lane->batched++] = entry;
    int64_t now = clock_ns(CLOCK_MONOTONIC);
    if (lane->first_ns == 0)
        lane->first_ns = now;
    if (lane->batched == BATCH || now - lane->flushed_at >= PATIENCE)
        lane_flush(lane);
    bool left = lane->batched == 1;
    pthread_mutex_unlock(&lane->lock);
    if (left)
        watch_ring();
}

void lane_read(struct file *file, int fd, uint64_t offset, uint64_t bytes) {
    struct lane *lane = lane_self;
    if (lane == NULL)
        return;
    uint64_t id = atomic_load_explicit(&lane->next_id, memory_order_relaxed);
    atomic_store_explicit(&lane->next_id, id + 1, memory_order_relaxed);
    if (file == NULL || bytes == 0)
        return;
    if (!is_ready(lane)) {
        lane->refused++;
        return;
    }
    if (atomic_load_explicit(&lane->shared->calls, memory_order_relaxed) > id) {
        lane->expired++;
        return;
    }
    int handle = handle_of(lane, file, fd);
    if (handle < 0) {
        lane->refused++;
        return;
    }
    uint64_t first = offset >> PAGE_SHIFT, end = ((offset + bytes - 1) >> PAGE_SHIFT) + 1;
    if (handle == lane->last_handle && first >= lane->last_first && end <= lane->last_end) {
        lane->coalesced++;
        return;
    }
    lane->last_handle = handle;
    lane->last_first = first;
    lane->last_end = end;
    push(lane, id, (foreread_entry){.fd = handle, .offset = offset, .length = bytes});
}

int64_t lane_wait_begin(void) {
    struct lane *lane = lane_self;
    if (lane != NULL) {
        pthread_mutex_lock(&lane->lock);
        lane_flush(lane);
        pthread_mutex_unlock(&lane->lock);
    }
    return clock_ns(CLOCK_MONOTONIC);
}

void lane_wait_end(enum wait what, int64_t since) {
    if (lane_self != NULL)
        lane_self->waited_ns[what] += clock_ns(CLOCK_MONOTONIC) - since;
}
