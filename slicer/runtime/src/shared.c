/* shared.c - lanes and waiting in the shared memory, used by both processes. */
#include "shared.h"
#include "raw.h"

#include <errno.h>
#include <linux/futex.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

uint64_t thread_path(uint64_t parent, uint64_t n) {
    /* The finalizer of MurmurHash3 over both: paths are only compared for equality. */
    uint64_t path = (parent * UINT64_C(0x9e3779b97f4a7c15)) ^ n;
    path = (path ^ (path >> 33)) * UINT64_C(0xff51afd7ed558ccd);
    path = (path ^ (path >> 33)) * UINT64_C(0xc4ceb9fe1a85ec53);
    path ^= path >> 33;
    return path > MAIN_PATH ? path : path + 2;
}

struct shared_lane *shared_lane(struct shared *shared, uint64_t path) {
    if (path == 0)
        return NULL;
    for (size_t n = 0; n < LANES; n++) {
        struct shared_lane *lane = &shared->lanes[n];
        uint64_t found = atomic_load(&lane->path);
        if (found == 0 && atomic_compare_exchange_strong(&lane->path, &found, path)) {
            /* The other process may find the lane before this store: then a ring is superfluous, or one is missed
             * (watch.c). */
            __atomic_store_n(&lane->counter.wake_at, UINT64_MAX, __ATOMIC_RELAXED);
            return lane;
        }
        if (found == path)
            return lane;
    }
    return NULL;
}

uint32_t shared_now_ms(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &time);
    return (uint32_t)(time.tv_sec * 1000 + time.tv_nsec / 1000000) | 1;
}

void shared_wait(_Atomic uint32_t *word, uint32_t value, int64_t nanoseconds) {
    struct timespec time = {nanoseconds / 1000000000, nanoseconds % 1000000000};
    raw_call(SYS_futex, word, FUTEX_WAIT, value, nanoseconds < 0 ? NULL : &time, NULL, 0);
}

void shared_wake(_Atomic uint32_t *word) {
    int error = errno;
    raw_call(SYS_futex, word, FUTEX_WAKE, INT32_MAX, NULL, NULL, 0);
    errno = error;
}
