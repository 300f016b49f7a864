/*
 * watch.c - the watcher: the thread of the prefetch process that knows where the program is.
 *
 * While the program reads what is on a list, it looks every few milliseconds: passes the entries whose call ID is
 * below the program's, tells the clients, wakes prefetch threads that wait for room. While the program does not read,
 * it sleeps until the program rings. It also ends prefetch threads that compute without end.
 *
 * Invariant: the program rings only where `wake_at` says so, which is set before the watcher sleeps and looked
 * at once more after; a ring that is missed all the same costs no more than IDLE.
 */
#include "watch.h"

#include <signal.h>

#include "credentials.h"
#include "files.h"
#include "hold.h"
#include "process.h"

/* Between looks, in ns: while something waits for the next one, while the program reads, and while it does
 * not. */
#define SOON 1000000
#define BUSY 4000000
#define IDLE 50000000
/* What a prefetch thread has on hold is released after this long, in ns. */
#define PATIENCE 1000000
/* Between two looks at the program's rights, in ns: one takes 30 us, 0.3 % of a processor. */
#define RIGHTS 10000000
/* Entries told at a time: a client counts no more of them as read (foreread_at). */
#define TOLD 64

/* Processor time a prefetch thread may use between two calls, in ns. */
static int64_t cpu_most;
/* What is to be done last, and whether it is time. */
static void (*last)(void);
static _Atomic bool ends;

/* Passes what the program has read; whether that was anything. */
static bool pass(struct lane *lane, uint64_t calls) {
    pthread_mutex_lock(&lane->lock);
    uint64_t before = lane->passed;
    while (lane->passed < lane->pushed && lane_id(lane, lane->passed) < calls)
        lane->passed++;
    uint64_t passed = lane->passed;
    pthread_cond_signal(&lane->room);
    pthread_mutex_unlock(&lane->lock);
    /* Without the lock: the client's own may be held for long. */
    for (uint64_t at = before; at < passed;) {
        at = passed - at > TOLD ? at + TOLD : passed;
        library.at(lane->client, at - 1);
    }
    return passed > before;
}

/* Ends a thread that has computed for too long without a call. */
static void limit(struct lane *lane) {
    clockid_t clock;
    if (atomic_load(&lane->ended) != NULL || pthread_getcpuclockid(lane->thread, &clock) != 0)
        return;
    int64_t cpu = clock_ns(clock);
    uint64_t id = atomic_load_explicit(&lane->next_id, memory_order_relaxed);
    if (id != lane->seen_id || lane->seen_cpu_ns == 0) {
        lane->seen_id = id;
        lane->seen_cpu_ns = cpu;
    } else if (cpu - lane->seen_cpu_ns > cpu_most) {
        pthread_kill(lane->thread, SIGXCPU);
    }
}

/* One look at a lane; ns until the next. */
static int64_t look(struct lane *lane) {
    limit(lane);
    pthread_mutex_lock(&lane->lock);
    bool held = lane->hold.count > 0;
    if (held && (atomic_load(&lane->ended) != NULL ||
                 clock_ns(CLOCK_MONOTONIC) - lane->hold.since >= PATIENCE)) {
        hold_release(lane);
        held = false;
    }
    bool soon = held || lane->sleeps;
    bool ahead = lane->pushed > lane->passed;
    pthread_mutex_unlock(&lane->lock);
    if (!ahead)
        return soon ? SOON : IDLE;
    uint64_t calls = shared_calls(lane->shared);
    bool reads = calls != lane->seen_calls;
    lane->seen_calls = calls;
    reads |= pass(lane, calls);
    return soon ? SOON : reads ? BUSY : IDLE;
}

static int64_t look_at_all(void) {
    int64_t next = IDLE;
    for (struct lane *lane = lanes(); lane != NULL; lane = lane->next) {
        int64_t wanted = look(lane);
        next = wanted < next ? wanted : next;
    }
    return next;
}

/* Has the program ring at its next read of something on a list; whether it has read meanwhile. */
static bool arm(void) {
    bool reads = false;
    for (struct lane *lane = lanes(); lane != NULL; lane = lane->next) {
        if (lane->pushed == lane->passed)
            continue;
        __atomic_store_n(&lane->shared->counter.wake_at, lane->seen_calls + 1, __ATOMIC_SEQ_CST);
        reads |= __atomic_load_n(&lane->shared->counter.calls, __ATOMIC_SEQ_CST) != lane->seen_calls;
    }
    return reads;
}

/* Gives back what is of no use any more: all that is open, once there is no prefetch thread; then the process itself, once the
 * program has read what was announced. Only a report is still to come then. */
static void retire(void) {
    static bool left;
    bool holds = false, retired = lanes() != NULL;
    for (struct lane *lane = lanes(); lane != NULL; lane = lane->next) {
        retired &= lane_retire(lane);
        holds |= lane->hold.count > 0;
    }
    if (lanes_run() || holds)
        return;
    if (!left) {
        left = true;
        mappings_leave();
        files_leave(process_report());
    }
    if (retired && process_report() < 0)
        process_leave();
}

/* Ends the process where the program has given up rights. */
static void check_rights(void) {
    static int64_t checked;
    int64_t now = clock_ns(CLOCK_MONOTONIC);
    if (now - checked < RIGHTS)
        return;
    checked = now;
    if (credentials_differ())
        process_fail("the program has other rights");
}

static void *watch(void *unused) {
    struct shared *shared = process_shared();
    while (!atomic_load(&ends)) {
        uint32_t rung = atomic_load(&shared->bell);
        check_rights();
        int64_t next = look_at_all();
        retire();
        if (next == IDLE && arm())
            next = BUSY;
        if (!atomic_load(&ends))
            shared_wait(&shared->bell, rung, next);
    }
    /* Tells the clients the last of the program's reads. */
    look_at_all();
    last();
    return unused;
}

void watch_end(void) {
    atomic_store(&ends, true);
    process_ring();
}

bool watch_start(int64_t cpu_ns, void (*at_end)(void)) {
    cpu_most = cpu_ns;
    last = at_end;
    pthread_t thread;
    return pthread_create(&thread, NULL, watch, NULL) == 0;
}
