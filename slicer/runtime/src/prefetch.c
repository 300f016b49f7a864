/*
 * prefetch.c - the life of the prefetch process.
 *
 * Three threads besides libforeread's: the first one, which was cloned, sleeps until the program is gone and then
 * ends the process; the prefetch thread runs the slice; the watcher is in watch.c. The slice may make more prefetch
 * threads.
 *
 * Invariant: whatever the others do, between the program's end and the end of the process the first thread uses no
 * lock and no memory of theirs, except for the report, for which it waits up to a second.
 */
#include "prefetch.h"

#include <fcntl.h>
#include <malloc.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "account.h"
#include "credentials.h"
#include "files.h"
#include "need.h"
#include "process.h"
#include "quarantine.h"
#include "queue.h"
#include "raw.h"
#include "report.h"
#include "threads.h"
#include "trace.h"
#include "watch.h"

/* Longest time for the report, in ns. */
#define REPORT_PATIENCE INT64_C(1000000000)
#define CPU_SECONDS 5.0
/* Bytes by which the heap grows. */
#define HEAP_STEP (1 << 20)

static struct prefetch_birth birth;
static int64_t born_ns;
static _Atomic uint32_t reported;

/* Called by exit() in a slice. */
static void at_exit(void) {
    lane_end("exit");
}

static void *run_slice(void *unused) {
    birth.f(birth.argc, birth.argv);
    return unused;
}

/* Called last by the watcher. */
static void write_report(void) {
    account_write(process_report(), born_ns);
    atomic_store(&reported, 1);
    shared_wake(&reported);
}

/* Sleeps until the program has ended or ends this process. */
static void outlive(void) {
    _Atomic uint32_t *life = life_word(birth.shared);
    uint32_t word;
    while (!is_over(word = atomic_load(life)))
        shared_wait(life, word, -1);
}

/* Ends this process if the program has ended meanwhile, unless there is a report to write. */
static void leave_if_over(void) {
    if (process_report() < 0 && process_is_over())
        process_leave();
}

static double number_from(const char *variable, double otherwise) {
    const char *text = getenv(variable);
    double number = text != NULL ? strtod(text, NULL) : 0;
    return number > 0 ? number : otherwise;
}

/* Opens the standard descriptors, which the process was born without, on /dev/null, except an input that was kept. */
static void open_nowhere(void) {
    int fd;
    do
        fd = open("/dev/null", O_RDWR | O_CLOEXEC);
    while (fd >= 0 && fd < STDERR_FILENO);
}

/* A slice allocates destinations of the program's reads, and writes to none of them. The C library has a heap per
 * thread, which grows by one system call per page; the first thread's grows in steps that can be set. */
static void set_heap(void) {
    mallopt(M_ARENA_MAX, 1);
    mallopt(M_TOP_PAD, HEAP_STEP);
}

static bool has_few_rights;

static void give_up_rights(void) {
    credentials_remember();
    has_few_rights = quarantine_birth();
}

/* Turns a copy of the program into a prefetch process; NULL, or the reason why the process must end. */
static const char *settle(void) {
    bool needed = need_await(birth.shared, give_up_rights);
    if (needed)
        open_nowhere();
    process_set_report(report_open());
    if (!needed)
        return "the program did not wait";
    leave_if_over();
    raw_call(SYS_prctl, PR_SET_NAME, "foreread-pre");
    quarantine_faults();
    bool quarantined = has_few_rights && quarantine_process(birth.shared);
    leave_if_over();
    trace_enter();
    if (!quarantined || !quarantine_calls(process_report()))
        return "could not be quarantined";
    leave_if_over();
    set_heap();
    files_make_room();
    files_enter(STDIN_FILENO, O_RDONLY);
    lanes_set_size((uint64_t)number_from("FOREREAD_PREEXEC_QUEUE", 65536));
    atexit(at_exit);
    double cpu_seconds = number_from("FOREREAD_PREEXEC_CPU", CPU_SECONDS);
    bool started = watch_start((int64_t)(cpu_seconds * 1e9), write_report) && threads_start(run_slice);
    return started ? NULL : "without threads";
}

void prefetch_main(const struct prefetch_birth *given) {
    process_begin(given->shared, given->program);
    birth = *given;
    born_ns = clock_ns(CLOCK_MONOTONIC);
    const char *why = settle();
    if (why != NULL)
        process_fail(why);
    outlive();
    if (process_report() >= 0) {
        watch_end();
        shared_wait(&reported, 0, REPORT_PATIENCE);
    }
    process_leave();
}
