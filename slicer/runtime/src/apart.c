/*
 * apart.c - a thread with its own table of descriptors, for the time in which files have to be opened.
 *
 * Closing any descriptor of a file drops all POSIX locks that the process has on it, including those inherited by
 * exec; and while a number is in use, another thread's open() cannot get it. Therefore the program's own threads
 * open and close nothing. A thread may have another table than the rest of its process, and costs a third of a
 * process.
 *
 * Invariant: when apart() returns, the thread is gone for the kernel, too: a program with one thread may make calls
 * that are refused to others (unshare(2), setns(2)).
 */
#include "apart.h"

#include <sched.h>
#include <signal.h>
#include <stdint.h>

#include "raw.h"

struct task {
    void (*f)(void *);
    void *argument;
};

static int run(void *given) {
    struct task *task = given;
    task->f(task->argument);
    return 0;
}

bool apart(void (*f)(void *), void *argument, char *stack, size_t bytes) {
    struct task task = {f, argument};
    /* The thread has the stack of a child and the program's signal handlers: none may run on it. All signals are
     * blocked, the C library's own included, because the C library does not know this thread. */
    const uint64_t all = UINT64_MAX;
    uint64_t before;
    raw_call(SYS_rt_sigprocmask, SIG_SETMASK, &all, &before, sizeof all);
    const int flags = CLONE_VM | CLONE_FS | CLONE_SIGHAND | CLONE_THREAD | CLONE_SYSVSEM | CLONE_VFORK;
    char *top = (char *)((uintptr_t)(stack + bytes) & ~(uintptr_t)15);
    int thread = clone(run, top, flags, &task);
    if (thread >= 0) {
        long process = raw_call(SYS_getpid);
        while (raw_call(SYS_tgkill, process, thread, 0) == 0)
            raw_call(SYS_sched_yield);
    }
    raw_call(SYS_rt_sigprocmask, SIG_SETMASK, &before, NULL, sizeof before);
    return thread >= 0;
}
