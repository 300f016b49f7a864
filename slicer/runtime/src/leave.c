/* leave.c - ending the prefetch process. */
#include "leave.h"

#include <errno.h>
#include <poll.h>

#include "apart.h"
#include "program.h"
#include "raw.h"

#ifndef SYS_pidfd_open
#define SYS_pidfd_open 434
#endif

/* A stack of its own, since a signal handler's may be small. Only the one thread that ends the process uses it. */
#define STACK (8 * 1024)
static char stack[STACK];

/* A process that ended this long ago, in ms, is gone, and its ID may be another's. */
#define GONE 1000

struct awaited {
    pid_t process;
    int milliseconds;
};

static void await_end(void *given) {
    const struct awaited *wait = given;
    long fd = raw_answer(SYS_pidfd_open, wait->process, 0, 0, 0, 0, 0);
    if (fd < 0)
        return;
    struct pollfd ends = {.fd = (int)fd, .events = POLLIN};
    struct timespec time = {wait->milliseconds / 1000, wait->milliseconds % 1000 * 1000000L};
    raw_answer(SYS_ppoll, (long)&ends, 1, (long)&time, 0, 0, 0);
}

/* Stops all rings by calls of the program: under a filter of system calls a ring would end the program. */
static void stop_ringing(struct shared *shared) {
    for (size_t n = 0; n < LANES; n++)
        __atomic_store_n(&shared->lanes[n].counter.wake_at, UINT64_MAX, __ATOMIC_SEQ_CST);
}

static bool is_long_gone(struct shared *shared) {
    uint32_t ended = atomic_load(&shared->ended_ms);
    return ended != 0 && shared_now_ms() - ended > GONE;
}

void foreread_leave(int milliseconds) {
    int error = errno;
    struct awaited wait = {.milliseconds = milliseconds};
    struct shared *shared = program_part(&wait.process);
    if (shared != NULL) {
        stop_ringing(shared);
        /* As the kernel does at the program's end. */
        atomic_fetch_or(life_word(shared), FUTEX_OWNER_DIED);
        shared_wake(life_word(shared));
        /* With a report, the process goes on for some time after the program's end, which the user has chosen. */
        bool waits = milliseconds != LEAVE_END || !program_reports();
        if (waits && !is_long_gone(shared))
            apart(await_end, &wait, stack, sizeof stack);
        stop_ringing(shared);
    }
    errno = error;
}
