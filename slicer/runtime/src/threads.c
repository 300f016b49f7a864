/* threads.c - the prefetch threads: that of main, and those made by prefetch threads. */
#include "threads.h"

#include <errno.h>
#include <linux/sched.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include "lane.h"
#include "process.h"
#include "quarantine.h"
#include "raw.h"
#include "trace.h"

/* Stack of main's prefetch thread, in bytes. */
#define STACK (8u << 20)
/* Time slice of a prefetch thread, in ns: the longest possible one. */
#define TURN 100000000

/* Number of waits at each point so far. */
static _Atomic uint32_t waits[FOREREAD_POINTS];

void prefetch_exit(int status) {
    (void)status;
    lane_end("exit");
}

void threads_wait(int point) {
    struct shared *shared = process_shared();
    uint32_t turn = atomic_fetch_add(&waits[point], 1) + 1;
    int64_t since = lane_wait_begin();
    atomic_fetch_add(&shared->points_waiting, 1);
    trace_waits(1);
    uint32_t signalled;
    while ((int32_t)((signalled = atomic_load(&shared->points[point])) - turn) < 0)
        shared_wait(&shared->points[point], signalled, -1);
    trace_waits(-1);
    atomic_fetch_sub(&shared->points_waiting, 1);
    lane_wait_end(WAIT_POINT, since);
}

/* Arguments of a new prefetch thread. */
struct start {
    void *(*f)(void *);
    void *argument;
    uint64_t path;
};

uint64_t threads_path(void) {
    if (lane_self == NULL)
        return 0;
    lanes_expect(1);
    return thread_path(lane_self->path, ++lane_self->made);
}

/* Argument of sched_setattr(2), in its first version. */
struct standing {
    uint32_t size;
    uint32_t policy;
    uint64_t flags;
    int32_t nice;
    uint32_t priority;
    uint64_t runtime, deadline, period;
};

/* Gives the calling thread, which computes, rare and long time slices (from Linux 6.12 on): threads that wake on its
 * processor while it runs, above all the program's, run first. Otherwise the program would wait up to a time slice,
 * a millisecond, each time it is woken. Threads that this one makes have normal time slices. It has the program's
 * share of the processors and no smaller one, which would keep it from getting ahead under load (AASFP gives it a
 * larger one). */
static void take_turns(void) {
    const struct standing standing = {
        .size = sizeof standing,
        .policy = SCHED_NORMAL,
        .flags = SCHED_FLAG_RESET_ON_FORK,
        .nice = getpriority(PRIO_PROCESS, 0),
        .runtime = TURN,
    };
    raw_call(SYS_sched_setattr, 0, &standing, 0);
}

/* Makes the calling thread a prefetch thread, as expected. If that fails, it is expected no longer. */
static bool begin_thread(uint64_t path) {
    raw_call(SYS_prctl, PR_SET_NAME, "prefetch");
    take_turns();
    bool begun = quarantine_thread() && lanes_add(path);
    if (!begun)
        lanes_expect(-1);
    return begun;
}

void threads_begin(uint64_t path) {
    if (path == 0 || !begin_thread(path))
        for (;;)
            raw_call(SYS_exit, 0);
}

void threads_end(void) {
    lane_closes();
    lane_end("finished");
}

/* The lane remains the thread's: a fault in the rest of the thread must not end the process. */
void threads_leave(void) {
    lane_closes();
    lane_finish(lane_self, "finished");
}

static void *begin(void *argument) {
    struct start start = *(struct start *)argument;
    free(argument);
    if (!begin_thread(start.path))
        return NULL;
    void *result = start.f(start.argument);
    threads_end();
    return result;
}

int prefetch_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*f)(void *),
                            void *argument) {
    struct lane *self = lane_self;
    struct start *start = malloc(sizeof *start);
    if (self == NULL || start == NULL) {
        free(start);
        return EAGAIN;
    }
    *start = (struct start){f, argument, thread_path(self->path, self->made + 1)};
    lanes_expect(1);
    int failed = pthread_create(thread, attributes, begin, start);
    if (failed) {
        lanes_expect(-1);
        free(start);
    } else {
        self->made++;
    }
    return failed;
}

bool threads_start(void *(*f)(void *)) {
    struct start *start = malloc(sizeof *start);
    pthread_attr_t attributes;
    if (start == NULL || pthread_attr_init(&attributes) != 0)
        return false;
    *start = (struct start){f, NULL, MAIN_PATH};
    pthread_attr_setstacksize(&attributes, STACK);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_t thread;
    return pthread_create(&thread, &attributes, begin, start) == 0;
}
