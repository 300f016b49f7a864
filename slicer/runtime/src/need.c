/*
 * need.c - finds out whether a program needs its prefetch thread, because it waits for its reads.
 *
 * A prefetch process costs its program one or two milliseconds: for its preparation, and for the processor time and
 * memory that it uses. If the data is in memory, or comes in order from a fast disk, the cost exceeds the gain.
 * Therefore the process sleeps from its birth until
 *
 *    - the program has waited for a millisecond and for an eighth of its time, which it finds out itself, at its calls. If few
 *      of its calls wait, the kernel reads ahead for it, and it must have waited for 3 ms;
 *    - or it has made no call yet, because it waits in the first or because there is time: after 0.4 ms if a file is known
 *      not to be in memory, else after 2 ms;
 *    - or a second thread reads, or messages fill the ring;
 *    - or it has run so long that the cost is a hundredth of its time.
 *
 * Until the process's first check the program reads the clock at each call; later at the first call after each
 * check. The interval between checks is half of the program's age.
 *
 * Invariant: even if a check or a call is missed, the process begins after LONG_LIFE at the latest.
 */
#include "need.h"

#include <stdlib.h>

#include "credentials.h"
#include "outlook.h"

/* All times in ns. Age of the process at its first check. */
#define FIRST_LOOK 400000
/* A program that ends earlier, and of which nothing is known, has no use for a prefetch thread. */
#define SHORT_LIFE 2000000
/* In a program that lives longer, the cost of a prefetch thread is negligible. */
#define LONG_LIFE 200000000
/* How long a program must have waited: at least WAITED and one PART-th of its time; and either WAITED_SELDOM,
 * whatever the number of calls, or WAITED_A_CALL per call, which is less than any disk takes. */
#define WAITED 1000000
#define PART 8
#define WAITED_SELDOM 3000000
#define WAITED_A_CALL 20000
/* Two calls that are closer than this had no relevant wait between them. */
#define NEAR 50000

/* Values of shared->need: each call checks; only the call for which it is rung checks; decided. */
enum { AT_CALLS, AT_RINGS, FOUND };

/* The program's first thread at the birth, and at its last call that read the clock. */
static struct {
    int64_t born, cpu, called;
} first;

static int64_t now(void) {
    return clock_ns(CLOCK_MONOTONIC);
}

void need_begin(void) {
    first.born = first.called = now();
    first.cpu = clock_ns(CLOCK_THREAD_CPUTIME_ID);
}

bool need_is_open(struct shared *shared) {
    return atomic_load_explicit(&shared->need, memory_order_relaxed) != FOUND;
}

void need_found(struct shared *shared) {
    if (need_is_open(shared)) {
        atomic_store(&shared->need, FOUND);
        shared_wake(life_word(shared));
    }
}

static bool has_waited(uint64_t calls) {
    int64_t at = now(), before = first.called;
    first.called = at;
    if (at - before < NEAR)
        return false;
    int64_t waited = at - first.born - (clock_ns(CLOCK_THREAD_CPUTIME_ID) - first.cpu);
    if (waited < WAITED || waited < (at - first.born) / PART)
        return false;
    return waited >= WAITED_SELDOM || (uint64_t)waited / WAITED_A_CALL >= calls;
}

void need_ask(struct shared *shared, struct foreread_counter *counter) {
    if (has_waited(counter->calls))
        need_found(shared);
    else if (atomic_load(&shared->need) == AT_CALLS)
        counter->wake_at = 0;
}

/* True if the process is to begin however long the program has waited. */
static bool begins(struct shared *shared, const struct shared_lane *lane, int64_t age) {
    struct shared_ring *ring = &shared->ring;
    if (age >= LONG_LIFE || !need_is_open(shared) || lane == NULL)
        return true;
    if (atomic_load(&ring->head) - atomic_load(&ring->tail) > RING / 4)
        return true;
    return shared_calls(lane) == 0 && (outlook_found_cold() || age >= SHORT_LIFE);
}

bool need_await(struct shared *shared, void (*prepare)(void)) {
    /* A number in the environment starts it in any case. */
    const char *chosen = getenv("FOREREAD_PREEXEC");
    bool found = chosen != NULL && *chosen != '\0';
    struct shared_lane *lane = shared_lane(shared, MAIN_PATH);
    int64_t born = now(), age = 0;
    while (!found) {
        uint32_t life = atomic_load(life_word(shared));
        if (is_over(life))
            return false;
        if (age > 0 && credentials_differ())
            return false;
        shared_wait(life_word(shared), life, age == 0 ? FIRST_LOOK : age / 2);
        if (is_over(atomic_load(life_word(shared))))
            return false;
        if (age == 0)
            prepare();
        age = now() - born;
        found = begins(shared, lane, age);
        if (!found) {
            /* Unless the program has found a need meanwhile. */
            uint32_t asked = AT_CALLS;
            atomic_compare_exchange_strong(&shared->need, &asked, AT_RINGS);
            __atomic_store_n(&lane->counter.wake_at, shared_calls(lane) + 1, __ATOMIC_SEQ_CST);
        }
    }
    if (age == 0)
        prepare();
    atomic_store(&shared->need, FOUND);
    return true;
}
