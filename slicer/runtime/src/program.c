/*
 * program.c - the computation thread's side.
 *
 * Every call here is made by the program itself, so each does as little as it can; the common one, which stores
 * a counter, is in the header. None waits for the prefetch process, allocates memory it would not give back, or changes errno.
 *
 * Invariant: the anchor's page is emptied by the kernel in a child of fork() (MADV_WIPEONFORK), so that a child
 * finds no shared memory and all calls do nothing there. The prefetch process finds none either: it was cloned
 * before the anchor was put in place.
 */
#include "program.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "birth.h"
#include "channel.h"
#include "lane.h"
#include "leave.h"
#include "need.h"
#include "prefetch.h"
#include "raw.h"
#include "report.h"
#include "trace.h"

/* At the beginning of a page of its own. */
struct anchor {
    _Atomic(struct shared *) shared;
    pid_t program, prefetch;
    bool reports;
};

static struct anchor nowhere;
static struct anchor *anchor = &nowhere;

/* What a thread knows of itself. */
static _Thread_local struct {
    /* 0 in a thread that was not made by foreread_pthread_create(): it does not count. */
    uint64_t path;
    /* Threads it has made. */
    uint64_t made;
} self;

/* Of threads before their first call: each call rings. */
static struct foreread_counter unknown;
/* Counts where nobody looks: of threads without a lane. */
static _Thread_local struct foreread_counter nobody = {.wake_at = UINT64_MAX};

_Thread_local struct foreread_counter *foreread_counter = &unknown;
_Thread_local unsigned foreread_left = FOREREAD_CHARACTERS;
_Thread_local unsigned foreread_owed;

struct shared *program_shared(void) {
    return atomic_load_explicit(&anchor->shared, memory_order_relaxed);
}

bool program_reports(void) {
    return anchor->reports;
}

struct shared *program_part(pid_t *prefetch) {
    if (program_shared() == NULL || anchor->program != raw_call(SYS_getpid))
        return NULL;
    *prefetch = anchor->prefetch;
    return atomic_exchange(&anchor->shared, NULL);
}

/* The shared memory, the calling thread holding the life lock. NULL without memory. */
static struct shared *make_shared(void) {
    struct shared *shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE,
                                 MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (shared == MAP_FAILED)
        return NULL;
    pthread_mutexattr_t kind;
    pthread_mutexattr_init(&kind);
    pthread_mutexattr_setpshared(&kind, PTHREAD_PROCESS_SHARED);
    pthread_mutexattr_setrobust(&kind, PTHREAD_MUTEX_ROBUST);
    pthread_mutex_init(&shared->life, &kind);
    pthread_mutexattr_destroy(&kind);
    if (birth_hold_life(shared) == 0)
        return shared;
    munmap(shared, sizeof *shared);
    return NULL;
}

static struct anchor *make_anchor(struct shared *shared) {
    struct anchor *made =
        mmap(NULL, sizeof *made, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (made == MAP_FAILED)
        return NULL;
    if (madvise(made, sizeof *made, MADV_WIPEONFORK) != 0) {
        munmap(made, sizeof *made);
        return NULL;
    }
    atomic_init(&made->shared, shared);
    return made;
}

/* What runs with more rights than its user has reads what the user may not know of, and believes nothing that the user
 * has put into its environment. */
static bool is_secure(void) {
    return getauxval(AT_SECURE) != 0;
}

bool program_is_wanted(void) {
    if (is_secure())
        return false;
    const char *chosen = getenv("FOREREAD_PREEXEC");
    if (chosen != NULL && strcmp(chosen, "0") == 0)
        return false;
    /* A debugger of memory (valgrind) runs it in place of the processor, and what it says is of the program alone. */
    const char *preloaded = getenv("LD_PRELOAD");
    if (preloaded != NULL && strstr(preloaded, "/vgpreload_") != NULL)
        return false;
    return true;
}

/* In a child of fork(): its one thread counts nothing. What forks without the C library's knowledge goes on counting with
 * the parent's lane, which misleads the prefetch thread and nobody else. */
static void leave_lane(void) {
    foreread_counter = &unknown;
}

/* The program's read, with the call ID it has if it is counted next, or was counted ahead of it. The prefetch thread is to
 * come as far before the program goes on: what it reads is then as the program has read it. In the prefetch process,
 * a read of the program's own code. */
static void write_down(const struct trace_seen *read) {
    unsigned owed = foreread_owed;
    foreread_owed -= owed > 0;
    uint64_t ahead = (uint64_t)FOREREAD_CHARACTERS - foreread_left - owed;
    struct shared *shared = program_shared();
    if (prefetch_is_here()) {
        if (lane_self != NULL)
            trace_observed(lane_self->path, atomic_load(&lane_self->next_id) + ahead, read);
    } else if (shared != NULL && self.path != 0 && foreread_counter != &nobody) {
        uint64_t id = (foreread_counter == &unknown ? 0 : foreread_counter->calls) + ahead;
        trace_add(TRACE_PROGRAM, self.path, id, read);
        struct shared_lane *lane = shared_lane(shared, self.path);
        if (lane != NULL)
            trace_follow((size_t)(lane - shared->lanes), id);
    }
}

/* A program that ends before its prefetch thread has come as far could not be compared with it. */
static void wait_for_slice(void) {
    if (!prefetch_is_here() && program_shared() != NULL)
        trace_linger();
}

static void create(void (*f)(int, char **), int argc, char **argv) {
    struct shared *shared = make_shared();
    if (shared == NULL)
        return;
    struct anchor *made = make_anchor(shared);
    trace_begin(&(struct trace_calls){write_down, wait_for_slice});
    pid_t prefetch = made != NULL ? birth(shared, f, argc, argv) : 0;
    if (prefetch > 0) {
        made->program = (pid_t)raw_call(SYS_getpid);
        made->prefetch = prefetch;
        made->reports = report_wanted() != NULL;
        self.path = MAIN_PATH;
        foreread_counter = &unknown;
        /* What was read before main is counted by nobody. */
        foreread_left = FOREREAD_CHARACTERS;
        anchor = made;
        pthread_atfork(NULL, NULL, leave_lane);
        need_begin();
        return;
    }
    trace_abandon();
    if (made != NULL)
        munmap(made, sizeof *made);
    birth_release_life(shared);
    munmap(shared, sizeof *shared);
}

void foreread_create_prefetch_thread(void (*f)(int, char **), int argc, char **argv) {
    int error = errno;
    if (anchor == &nowhere && !prefetch_is_here() && program_is_wanted() && birth_is_possible())
        create(f, argc, argv);
    errno = error;
}

/* At a thread's first call. */
static struct foreread_counter *find_counter(void) {
    struct shared *shared = program_shared();
    struct shared_lane *lane = shared != NULL ? shared_lane(shared, self.path) : NULL;
    return lane != NULL ? &lane->counter : &nobody;
}

static void ring(struct shared *shared) {
    __atomic_store_n(&foreread_counter->wake_at, UINT64_MAX, __ATOMIC_RELAXED);
    if (shared == NULL)
        return;
    if (!need_is_open(shared)) {
        atomic_fetch_add(&shared->bell, 1);
        shared_wake(&shared->bell);
    } else if (self.path == MAIN_PATH) {
        need_ask(shared, foreread_counter);
    } else {
        need_found(shared);
    }
}

void foreread_ring(unsigned n) {
    /* The program's own code, which the prefetch thread runs as it is. */
    if (prefetch_is_here()) {
        lane_calls(n);
        return;
    }
    struct shared *shared = program_shared();
    if (foreread_counter == &unknown) {
        foreread_counter = find_counter();
        if (shared != NULL && foreread_counter != &nobody && need_is_open(shared))
            ring(shared);
        foreread_calls(n);
    } else {
        ring(shared);
    }
}

void foreread_characters(void) {
    foreread_calls(0);
}

struct foreread_counter *foreread_pause(void) {
    struct foreread_counter *counter = foreread_counter;
    if (foreread_left != FOREREAD_CHARACTERS)
        foreread_characters();
    foreread_counter = &nobody;
    return counter;
}

void foreread_resume(struct foreread_counter **counter) {
    foreread_left = FOREREAD_CHARACTERS;
    foreread_counter = *counter;
}

/* The last characters of a thread that ends, or of the program. */
static void count_last(void) {
    if (foreread_left != FOREREAD_CHARACTERS)
        foreread_characters();
}

/* After the program's own destructors. Whoever waits for the program may rewrite its file, or unmount what it has read. */
static __attribute__((destructor(101))) void end(void) {
    count_last();
    foreread_leave(LEAVE_END);
}

static void signal_point(struct shared *shared, int point) {
    atomic_fetch_add(&shared->points[point], 1);
    if (atomic_load(&shared->points_waiting) != 0)
        shared_wake(&shared->points[point]);
}

void foreread_synchronize(int point, int type) {
    if (point < 0 || point >= FOREREAD_POINTS)
        return;
    struct shared *shared = program_shared();
    if (type == FOREREAD_SIGNAL && shared != NULL)
        signal_point(shared, point);
    else if (type == FOREREAD_WAIT && prefetch_is_here())
        prefetch_wait(point);
}

void foreread_send(int channel, const void *data, size_t bytes) {
    struct shared *shared = program_shared();
    if (shared != NULL)
        channel_send(shared, channel, data, bytes);
}

void foreread_send_fd(int channel, int fd) {
    struct shared *shared = program_shared();
    if (shared == NULL)
        return;
    int error = errno;
    struct stat facts;
    struct sent_fd sent = {.fd = fd};
    if (fstat(fd, &facts) == 0) {
        sent.dev = facts.st_dev;
        sent.ino = facts.st_ino;
        off_t offset = lseek(fd, 0, SEEK_CUR);
        sent.offset = offset < 0 ? 0 : offset;
    }
    channel_send(shared, channel, &sent, sizeof sent);
    errno = error;
}

/* What a new thread is told. */
struct start {
    void *(*f)(void *);
    void *argument;
    uint64_t path;
};

static void *begin(void *argument) {
    struct start start = *(struct start *)argument;
    free(argument);
    self.path = start.path;
    void *result = start.f(start.argument);
    count_last();
    return result;
}

int foreread_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*f)(void *),
                            void *argument) {
    int error = errno;
    struct start *start = program_shared() != NULL && self.path != 0 ? malloc(sizeof *start) : NULL;
    errno = error;
    if (start == NULL)
        return pthread_create(thread, attributes, f, argument);
    *start = (struct start){f, argument, thread_path(self.path, self.made + 1)};
    int failed = pthread_create(thread, attributes, begin, start);
    if (failed)
        free(start);
    else
        self.made++;
    return failed;
}

uint64_t foreread_thread_path(void) {
    if (prefetch_is_here())
        return prefetch_thread_path();
    return program_shared() != NULL && self.path != 0 ? thread_path(self.path, ++self.made) : 0;
}

void foreread_thread_begin(uint64_t path) {
    if (prefetch_is_here())
        prefetch_thread_begin(path);
    else
        self.path = path;
}

void foreread_thread_end(void) {
    if (prefetch_is_here())
        prefetch_thread_end();
    else
        count_last();
}

void foreread_thread_leave(void) {
    if (prefetch_is_here())
        prefetch_thread_leave();
    else
        count_last();
}
