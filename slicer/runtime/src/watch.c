/*
 * watch.c - the watcher: the thread of the prefetch process that follows the program's progress.
 *
 * While the program reads entries of a list, the watcher checks every few milliseconds: it passes the entries whose
 * call ID is below the program's, tells the clients, and wakes prefetch threads that wait for room. While the
 * program does not read, the watcher sleeps until the program rings. It also ends prefetch threads that compute
 * without end.
 *
 * Invariant: the program rings only at `wake_at`, which is set before the watcher sleeps; the counter is checked
 * again afterwards. A ring that is missed nevertheless costs at most IDLE.
 */
#include "watch.h"

#include <signal.h>

#include "credentials.h"
#include "files.h"
#include "hold.h"
#include "process.h"

/* Time between two checks, in ns: while a thread waits for the next one, while the program reads, and while it does
 * not. */
#define SOON 1000000
#define BUSY 4000000
#define IDLE 50000000
/* Held reads of a prefetch thread are released after this time, in ns. */
#define PATIENCE 1000000
/* Time between two checks of the program's rights, in ns: one takes 30 us, 0.3 % of a processor. */
#define RIGHTS 10000000
/* Entries per report to a client: it counts no more of them as read (foreread_at). */
#define TOLD 64

/* Processor time that a prefetch thread may use between two calls, in ns. */
static int64_t cpu_most;
/* The function to be called at the end, and whether the end has come. */
static void (*last)(void);
static _Atomic bool ends;

/* Passes the entries that the program has read; true if there were any. */
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

/* Ends a thread that has computed too long without a call. */
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

/* Checks a lane; returns the time until the next check in ns. */
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

/* Makes the program ring at its next counted call if a list has entries; true if it has made one meanwhile. */
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

/* Releases what is no longer needed: all open files, once there is no prefetch thread; then the process itself, once
 * the program has read what was announced. If there is a report to write, the process stays for that. */
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

/* Ends the process if the program's rights have changed. */
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
    /* Tells the clients the program's last reads. */
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
