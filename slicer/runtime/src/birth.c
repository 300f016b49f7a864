/*
 * birth.c - cloning the prefetch process so that the program cannot notice it.
 *
 *     program ──vfork──> between ──fork──> prefetch process
 *        └── reaps ─────────┘ leaves at once
 *
 * The intermediate process shares the program's memory but has its own descriptor table, which it empties before it
 * forks: the prefetch process never holds one of the program's pipes open. Because the intermediate process exits, the
 * prefetch process is nobody's child: it appears in no wait() and sends no SIGCHLD, not even after the program's
 * exec. A process that adopts orphans would get it back as a child, with SIGCHLD. There, the prefetch process is a
 * direct child with exit signal 0, which only wait() with __WALL or __WCLONE sees.
 *
 * The intermediate process runs in the program's memory, on a part of its stack. It therefore makes only system calls,
 * and as few as possible, because the program waits for it.
 */
#include "birth.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/single_threaded.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <linux/futex.h>

#include "prefetch.h"
#include "raw.h"

/* Stack of the first thread of the prefetch process, which sets up the process and then only waits. Only the pages
 * in use are touched. */
#define STACK (32 * 1024)

struct plan {
    struct prefetch_birth birth;
    /* There is no intermediate process. */
    bool direct;
    /* The program stays on its processor meanwhile; otherwise it may use `processors`. */
    bool stays;
    cpu_set_t processors;
    /* The prefetch process; 0 while there is none. */
    pid_t born;
};

/* True for a process that adopts orphans: init of its name space, or a subreaper. */
static bool adopts(void) {
    int subreaper = 0;
    raw_call(SYS_prctl, PR_GET_CHILD_SUBREAPER, &subreaper);
    return subreaper != 0 || getpid() == 1;
}

bool birth_is_possible(void) {
    return __libc_single_threaded;
}

/* Keeps the calling thread, and the processes that it clones, on the current processor. The intermediate process runs
 * while the program sleeps. On another processor it would have to wait for its turn, for milliseconds if that
 * processor is busy. */
static bool stay_here(cpu_set_t *before) {
    int here = sched_getcpu();
    if (here < 0 || here >= CPU_SETSIZE || sched_getaffinity(0, sizeof *before, before) != 0)
        return false;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(here, &one);
    return sched_setaffinity(0, sizeof one, &one) == 0;
}

/* Undoes stay_here(). First without any limit: a copy of the limit that the control group sets would outlast the
 * control group's own setting. */
static void go_anywhere(const cpu_set_t *before) {
    cpu_set_t all, now;
    memset(&all, 0xff, sizeof all);
    if (sched_setaffinity(0, sizeof all, &all) != 0 || sched_getaffinity(0, sizeof now, &now) != 0 ||
        !CPU_EQUAL(&now, before))
        sched_setaffinity(0, sizeof *before, before);
}

int birth_hold_life(struct shared *shared) {
    int error = pthread_mutex_lock(&shared->life);
    /* The kernel wakes a waiter of a dead owner's lock only if this bit is set. The prefetch process waits on the
     * word itself, not through the C library, which would write to it. */
    if (error == 0)
        atomic_fetch_or(life_word(shared), FUTEX_WAITERS);
    return error;
}

void birth_release_life(struct shared *shared) {
    pthread_mutex_unlock(&shared->life);
}

/* If standard input is a regular file, opens it again, at the program's present offset but with an offset of its
 * own: the prefetch thread can read it by itself. True if it is a regular file. */
static bool keep_input(void) {
    struct stat facts;
    int flags = raw_call(SYS_fcntl, STDIN_FILENO, F_GETFL);
    if (flags < 0 || (flags & O_ACCMODE) == O_WRONLY || (flags & O_PATH) != 0 ||
        fstat(STDIN_FILENO, &facts) != 0 || !S_ISREG(facts.st_mode))
        return false;
    off_t place = lseek(STDIN_FILENO, 0, SEEK_CUR);
    long again = raw_call(SYS_openat, AT_FDCWD, "/proc/self/fd/0", O_RDONLY | O_CLOEXEC);
    if (place < 0 || again < 0)
        return false;
    lseek((int)again, place, SEEK_SET);
    raw_call(SYS_dup3, again, STDIN_FILENO, O_CLOEXEC);
    return true;
}

/* Closes all descriptors of the program, except such an input. */
static bool leave_descriptors(void) {
    unsigned first = keep_input() ? STDIN_FILENO + 1 : STDIN_FILENO;
    return raw_call(SYS_close_range, first, ~0u, 0) == 0;
}

static int child(void *argument) {
    struct plan *plan = argument;
    bool left = leave_descriptors();
    if (plan->stays)
        go_anywhere(&plan->processors);
    if (left && plan->direct)
        prefetch_main(&plan->birth);
    if (left && !plan->direct) {
        /* Not fork(), which would run the program's handlers. */
        long pid = raw_call(SYS_clone, SIGCHLD, 0, 0, 0, 0);
        if (pid == 0)
            prefetch_main(&plan->birth);
        plan->born = pid > 0 ? (pid_t)pid : 0;
    }
    raw_call(SYS_exit_group, 0);
    return 0;
}

/* Clones on a separate stack, below the part of the stack that the program continues with. Returns the prefetch
 * process, or 0. */
static pid_t bear(struct plan *plan) {
    _Alignas(16) char stack[STACK];
    int flags = plan->direct ? 0 : CLONE_VM | CLONE_VFORK;
    pid_t pid = clone(child, stack + STACK, flags, plan);
    if (pid < 0)
        return 0;
    if (plan->direct)
        return pid;
    while (waitpid(pid, NULL, __WCLONE) < 0 && errno == EINTR)
        ;
    return plan->born;
}

pid_t birth(struct shared *shared, void (*f)(int, char **), int argc, char **argv) {
    struct plan plan = {
        .birth = {.shared = shared, .program = getpid(), .f = f, .argc = argc, .argv = argv},
        .direct = adopts(),
    };
    /* No signal handler of the program may run in between, nor in the prefetch process. */
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    plan.stays = !plan.direct && stay_here(&plan.processors);
    pid_t born = bear(&plan);
    if (plan.stays)
        go_anywhere(&plan.processors);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return born;
}
