/* prefetch.h - the prefetch process: its beginning, its threads' ends, its end. */
#ifndef PREFETCH_H
#define PREFETCH_H

#include <signal.h>

#include "shared.h"

/* What the prefetch process is born with. */
struct prefetch_birth {
    struct shared *shared;
    pid_t program;
    void (*f)(int, char **);
    int argc;
    char **argv;
};

/* Whether this is the prefetch process. */
bool prefetch_is_here(void);
/* Its life, on the stack it was cloned with. */
_Noreturn void prefetch_main(const struct prefetch_birth *birth);

/* In the prefetch process only. */
struct shared *prefetch_shared(void);
pid_t prefetch_program(void);

/* The same as foreread_thread_path() and what follows it, in the prefetch process. A thread that cannot be one ends. */
uint64_t prefetch_thread_path(void);
void prefetch_thread_begin(uint64_t path);
_Noreturn void prefetch_thread_end(void);
void prefetch_thread_leave(void);

/* Ends the calling prefetch thread. What it has announced is still fetched. `why` is a constant; the
 * first one given is reported. Safe in a signal handler. */
_Noreturn void prefetch_end_thread(const char *why);

/* Ends the process. */
_Noreturn void prefetch_leave(void);
/* Whether the program has ended, or has parted with this process. */
bool prefetch_is_over(void);
/* Whether a prefetch thread runs, or is to. */
bool prefetch_slices_run(void);
/* The descriptor that is to be reported to, or -1. */
int prefetch_report(void);
/* Ends the process, which is of no use; reported. */
_Noreturn void prefetch_fail(const char *why);

/* foreread_synchronize(point, FOREREAD_WAIT). */
void prefetch_wait(int point);

#endif
