/* process.c - state of the prefetch process that all its parts use, and its end. */
#include "process.h"

#include "raw.h"
#include "report.h"
#include "trace.h"

static bool is_prefetch;
static struct shared *shared;
static pid_t program;
static int report = -1;

void process_begin(struct shared *with, pid_t of) {
    is_prefetch = true;
    shared = with;
    program = of;
}

void process_set_report(int fd) {
    report = fd;
}

bool process_is_prefetch(void) {
    return is_prefetch;
}

struct shared *process_shared(void) {
    return shared;
}

pid_t process_program(void) {
    return program;
}

int process_report(void) {
    return report;
}

bool process_is_over(void) {
    return is_over(atomic_load(life_word(shared)));
}

void process_ring(void) {
    atomic_fetch_add(&shared->bell, 1);
    shared_wake(&shared->bell);
}

void process_leave(void) {
    atomic_store(&shared->ended_ms, shared_now_ms());
    for (;;)
        raw_call(SYS_exit_group, 0);
}

void process_fail(const char *why) {
    trace_failed();
    report_failure(report, program, why);
    process_leave();
}
