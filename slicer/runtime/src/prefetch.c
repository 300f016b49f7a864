/*
 * prefetch.c - the life of the prefetch process.
 *
 * Three threads besides libforeread's: the one it was cloned with, which sleeps until the program is gone and
 * then ends the process; the prefetch thread, which runs the slice; the watcher (watch.c). The slice may
 * make more prefetch threads.
 *
 * Invariant: whatever the others do, the first one touches no lock and no memory of theirs on its way from the
 * program's end to the process's, but for the report, which it gives a second.
 */
#include "prefetch.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "channel.h"
#include "credentials.h"
#include "files.h"
#include "lane.h"
#include "need.h"
#include "quarantine.h"
#include "raw.h"
#include "report.h"
#include "trace.h"

/* Of a prefetch thread, in bytes. */
#define STACK (8u << 20)
/* The report may take this long, in ns. */
#define REPORT_PATIENCE INT64_C(1000000000)
#define CPU_SECONDS 5.0
/* What its heap grows by, in bytes. */
#define HEAP_STEP (1 << 20)
/* A turn of a prefetch thread on a processor, in ns: the longest there is. */
#define TURN 100000000

static bool here;
static struct prefetch_birth birth;
static int64_t born_ns;
static int report = -1;
static _Atomic uint32_t reported;
/* Prefetch threads there are, or are to be: that of main from the beginning. */
static _Atomic int running = 1;
/* Waits there have been at each point. */
static _Atomic uint32_t waits[FOREREAD_POINTS];

bool prefetch_is_here(void) {
    return here;
}

struct shared *prefetch_shared(void) {
    return birth.shared;
}

pid_t prefetch_program(void) {
    return birth.program;
}

bool prefetch_slices_run(void) {
    return atomic_load(&running) > 0;
}

int prefetch_report(void) {
    return report;
}

static void end_lane(struct lane *lane, const char *why) {
    /* Its last characters, as the program's are at its end. */
    atomic_fetch_add(&lane->next_id, FOREREAD_CHARACTERS - foreread_left);
    foreread_left = FOREREAD_CHARACTERS;
    atomic_store(&lane->cpu_ns, clock_ns(CLOCK_THREAD_CPUTIME_ID));
    const char *none = NULL;
    if (atomic_compare_exchange_strong(&lane->ended, &none, why)) {
        atomic_fetch_sub(&running, 1);
        if (lane->shared != NULL)
            trace_reached((size_t)(lane->shared - birth.shared->lanes), UINT64_MAX);
        trace_ended();
    }
    /* The watcher hands over what is left. */
    watch_ring();
}

void prefetch_end_thread(const char *why) {
    /* libforeread's threads, and the watcher, hold up everything. */
    if (lane_self == NULL)
        prefetch_leave();
    end_lane(lane_self, why);
    /* Not pthread_exit(): handlers for the thread's end are the slice's, and may be what failed. */
    for (;;)
        raw_call(SYS_exit, 0);
}

void prefetch_leave(void) {
    atomic_store(&birth.shared->ended_ms, shared_now_ms());
    for (;;)
        raw_call(SYS_exit_group, 0);
}

void prefetch_fail(const char *why) {
    trace_failed();
    report_failure(report, birth.program, why);
    prefetch_leave();
}

void prefetch_exit(int status) {
    (void)status;
    prefetch_end_thread("exit");
}

/* exit() in a slice. */
static void at_exit(void) {
    prefetch_end_thread("exit");
}

void prefetch_wait(int point) {
    struct shared *shared = prefetch_shared();
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

size_t foreread_receive(int channel, void *data, size_t bytes) {
    if (!here)
        return 0;
    int64_t since = lane_wait_begin();
    trace_waits(1);
    ssize_t got = channel_receive(birth.shared, channel, data, bytes);
    trace_waits(-1);
    lane_wait_end(WAIT_MESSAGE, since);
    if (got < 0)
        prefetch_end_thread("a message was lost");
    return (size_t)got;
}

/* What a new prefetch thread is told. */
struct start {
    void *(*f)(void *);
    void *argument;
    uint64_t path;
};

uint64_t prefetch_thread_path(void) {
    if (lane_self == NULL)
        return 0;
    atomic_fetch_add(&running, 1);
    return thread_path(lane_self->path, ++lane_self->made);
}

/* What sched_setattr(2) takes, in its first version. */
struct standing {
    uint32_t size;
    uint32_t policy;
    uint64_t flags;
    int32_t nice;
    uint32_t priority;
    uint64_t runtime, deadline, period;
};

/* Has the calling thread, which computes, take its turns on a processor seldom and long at a time (from Linux 6.12 on): who
 * wakes there while it runs, the program before all, goes first. Else the program waits up to a turn, a millisecond, each
 * time that it is woken. Threads that this one makes have turns like any other's. It has the program's share of the
 * processors, no less: beside others' load a smaller one would keep it from getting ahead (AASFP gives it a larger one). */
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

static bool begin_thread(uint64_t path) {
    raw_call(SYS_prctl, PR_SET_NAME, "prefetch");
    take_turns();
    return quarantine_thread() && lane_begin(path);
}

void prefetch_thread_begin(uint64_t path) {
    if (path == 0 || !begin_thread(path))
        for (;;)
            raw_call(SYS_exit, 0);
}

void prefetch_thread_end(void) {
    lane_closes();
    prefetch_end_thread("finished");
}

/* It stays the thread's lane: a fault in what is left of the thread is not everybody's. */
void prefetch_thread_leave(void) {
    lane_closes();
    end_lane(lane_self, "finished");
}

static void *begin(void *argument) {
    struct start start = *(struct start *)argument;
    free(argument);
    if (!begin_thread(start.path)) {
        atomic_fetch_sub(&running, 1);
        return NULL;
    }
    void *result = start.f(start.argument);
    prefetch_thread_end();
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
    atomic_fetch_add(&running, 1);
    int failed = pthread_create(thread, attributes, begin, start);
    if (failed) {
        atomic_fetch_sub(&running, 1);
        free(start);
    } else {
        self->made++;
    }
    return failed;
}

static void *run_slice(void *unused) {
    birth.f(birth.argc, birth.argv);
    return unused;
}

/* The prefetch thread, as the program's first thread. */
static bool start_slice(void) {
    struct start *start = malloc(sizeof *start);
    pthread_attr_t attributes;
    if (start == NULL || pthread_attr_init(&attributes) != 0)
        return false;
    *start = (struct start){run_slice, NULL, MAIN_PATH};
    pthread_attr_setstacksize(&attributes, STACK);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_t thread;
    return pthread_create(&thread, &attributes, begin, start) == 0;
}

/* The watcher's last act. */
static void write_report(void) {
    report_write(report, born_ns);
    atomic_store(&reported, 1);
    shared_wake(&reported);
}

bool prefetch_is_over(void) {
    return is_over(atomic_load(life_word(birth.shared)));
}

/* Sleeps until the program has ended, or parts with this process. */
static void outlive(void) {
    _Atomic uint32_t *life = life_word(birth.shared);
    uint32_t word;
    while (!is_over(word = atomic_load(life)))
        shared_wait(life, word, -1);
}

/* Where the program has ended meanwhile, so does this, unless it is to report. */
static void leave_if_over(void) {
    if (report < 0 && prefetch_is_over())
        prefetch_leave();
}

static double number_from(const char *variable, double otherwise) {
    const char *text = getenv(variable);
    double number = text != NULL ? strtod(text, NULL) : 0;
    return number > 0 ? number : otherwise;
}

/* Has the standard descriptors, which it was born without, lead nowhere, but for an input that was kept. */
static void open_nowhere(void) {
    int fd;
    do
        fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    while (fd >= 0 && fd < STDERR_FILENO);
}

/* A slice allocates what the program reads into, and writes to none of it. The C library has a heap for each thread, which
 * grows by a system call a page; the first thread's grows by what it is told. */
static void set_heap(void) {
    mallopt(M_ARENA_MAX, 1);
    mallopt(M_TOP_PAD, HEAP_STEP);
}

static bool has_few_rights;

static void give_up_rights(void) {
    credentials_remember();
    has_few_rights = quarantine_birth();
}

/* From a copy of the program to a prefetch process; NULL, or why it is to end. */
static const char *settle(void) {
    bool needed = need_await(birth.shared, give_up_rights);
    if (needed)
        open_nowhere();
    report = report_open();
    if (!needed)
        return "the program did not wait";
    leave_if_over();
    raw_call(SYS_prctl, PR_SET_NAME, "foreread-pre");
    quarantine_faults();
    bool quarantined = has_few_rights && quarantine_process(birth.shared);
    leave_if_over();
    trace_enter();
    if (!quarantined || !quarantine_calls(report))
        return "could not be quarantined";
    leave_if_over();
    set_heap();
    files_make_room();
    files_enter(STDIN_FILENO, O_RDONLY);
    lanes_set_size((uint64_t)number_from("FOREREAD_PREEXEC_QUEUE", 65536));
    atexit(at_exit);
    double cpu_seconds = number_from("FOREREAD_PREEXEC_CPU", CPU_SECONDS);
    bool started = watch_start((int64_t)(cpu_seconds * 1e9), write_report) && start_slice();
    return started ? NULL : "without threads";
}

void prefetch_main(const struct prefetch_birth *given) {
    here = true;
    birth = *given;
    born_ns = clock_ns(CLOCK_MONOTONIC);
    const char *why = settle();
    if (why != NULL)
        prefetch_fail(why);
    outlive();
    if (report >= 0) {
        watch_end();
        shared_wait(&reported, 0, REPORT_PATIENCE);
    }
    prefetch_leave();
}
