/*
 * computation.c - the computation thread's side: birth of the prefetch process, synchronization points, messages,
 * threads.
 *
 * The program itself makes these calls, so each does as little as possible. None waits for the prefetch process
 * (except at its end), allocates memory that it does not free, or changes errno.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../foreread_preexec.h"
#include "birth.h"
#include "calls.h"
#include "channel.h"
#include "leave.h"
#include "need.h"
#include "process.h"
#include "program.h"
#include "report.h"
#include "threads.h"
#include "trace.h"

/* Makes the shared memory; the calling thread then holds the life lock. NULL without memory. */
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

/* Tests compare the reads of both threads: the program waits at its end until the prefetch thread has come as far. */
static void wait_for_slice(void) {
    if (!process_is_prefetch() && program_shared() != NULL)
        trace_linger();
}

static void create(void (*f)(int, char **), int argc, char **argv) {
    struct shared *shared = make_shared();
    if (shared == NULL)
        return;
    struct anchor *made = program_make_anchor(shared);
    trace_begin(&(struct trace_calls){calls_write_down, wait_for_slice});
    pid_t prefetch = made != NULL ? birth(shared, f, argc, argv) : 0;
    if (prefetch > 0) {
        calls_begin();
        program_anchor(made, prefetch, report_wanted() != NULL);
        pthread_atfork(NULL, NULL, calls_forget);
        need_begin();
        return;
    }
    trace_abandon();
    if (made != NULL)
        program_drop_anchor(made);
    birth_release_life(shared);
    munmap(shared, sizeof *shared);
}

void foreread_create_prefetch_thread(void (*f)(int, char **), int argc, char **argv) {
    int error = errno;
    if (!program_is_anchored() && !process_is_prefetch() && program_is_wanted() && birth_is_possible())
        create(f, argc, argv);
    errno = error;
}

/* After the program's own destructors. Another process that waits for the program may then rewrite its file, or
 * unmount a file system that it has read. */
static __attribute__((destructor(101))) void end(void) {
    calls_count_last();
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
    else if (type == FOREREAD_WAIT && process_is_prefetch())
        threads_wait(point);
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

/* Arguments of a new thread. */
struct start {
    void *(*f)(void *);
    void *argument;
    uint64_t path;
};

static void *begin(void *argument) {
    struct start start = *(struct start *)argument;
    free(argument);
    calls_begin_thread(start.path);
    void *result = start.f(start.argument);
    calls_count_last();
    return result;
}

int foreread_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*f)(void *),
                            void *argument) {
    int error = errno;
    struct start *start = program_shared() != NULL && calls_count() ? malloc(sizeof *start) : NULL;
    errno = error;
    if (start == NULL)
        return pthread_create(thread, attributes, f, argument);
    *start = (struct start){f, argument, calls_next_path()};
    int failed = pthread_create(thread, attributes, begin, start);
    if (failed)
        free(start);
    else
        calls_made_thread();
    return failed;
}
