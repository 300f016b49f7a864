/* trace.c - the file in which the reads of both sides are written down. */
#include "trace.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#define BYTES (sizeof(struct trace_head) + TRACE_ROOM * sizeof(struct trace_entry))
/* For the program's waits, in ns: time between two checks; longest wait at its end, and longest sum of waits before;
 * and how long it waits for prefetch threads that wait themselves or have not begun. */
#define LOOK 100000
#define PATIENCE 2000000000
#define STALLED 20000000

static char name[4096];
static struct trace_head *head;
static pid_t owner;
/* Time that the program has waited before its end, ns. */
static _Atomic int64_t followed;
/* True while the calling thread is in a read of the runtime itself. */
static _Thread_local bool reads;
/* The last TRACE_READ entry of the calling thread. */
static _Thread_local struct trace_entry *last;

static struct trace_head *map(int fd) {
    void *mapped = fd < 0 ? MAP_FAILED : mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (fd >= 0)
        close(fd);
    return mapped == MAP_FAILED ? NULL : mapped;
}

/* Each process has its own file, and so has each program that the process executes. */
static int make_file(const char *folder) {
    for (int n = 0; n < 100; n++) {
        int length = snprintf(name, sizeof name, "%s/%d.%d", folder, (int)getpid(), n);
        if (length < 0 || (size_t)length >= sizeof name)
            return -1;
        int fd = open(name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
        if (fd >= 0 || errno != EEXIST)
            return fd;
    }
    return -1;
}

void trace_begin(const struct trace_calls *calls) {
    const char *folder = getenv("FOREREAD_PREEXEC_TRACE");
    if (folder == NULL || *folder == '\0')
        return;
    int fd = make_file(folder);
    if (fd < 0 || ftruncate(fd, BYTES) != 0 || (head = map(fd)) == NULL)
        return;
    /* Children of the program add nothing, and the prefetch process maps the file itself. */
    madvise(head, BYTES, MADV_DONTFORK);
    owner = getpid();
    head->room = TRACE_ROOM;
    head->magic = TRACE_MAGIC;
    void (*observe)(const struct trace_calls *);
    *(void **)&observe = dlsym(RTLD_DEFAULT, "foreread_observe");
    if (observe != NULL)
        observe(calls);
}

void trace_abandon(void) {
    if (head == NULL)
        return;
    trace_failed();
    munmap(head, BYTES);
    head = NULL;
}

void trace_enter(void) {
    if (head != NULL)
        head = map(open(name, O_RDWR | O_CLOEXEC | O_NOFOLLOW));
}

bool trace_is_on(void) {
    return head != NULL;
}

void trace_add(enum trace_kind kind, uint64_t path, uint64_t id, const struct trace_seen *read) {
    if (head == NULL)
        return;
    uint64_t at = atomic_fetch_add(&head->used, 1);
    reads = false;
    if (kind == TRACE_READ)
        last = NULL;
    if (at >= TRACE_ROOM)
        return;
    struct trace_entry *entry = (struct trace_entry *)(head + 1) + at;
    entry->path = path;
    entry->id = id;
    if (read != NULL) {
        entry->placed = read->placed;
        entry->dev = read->dev;
        entry->ino = read->ino;
        entry->offset = read->offset;
        entry->bytes = read->bytes;
    }
    atomic_store(&entry->kind, kind);
    if (kind == TRACE_READ)
        last = entry;
}

void trace_reads(void) {
    reads = true;
}

void trace_observed(uint64_t path, uint64_t id, const struct trace_seen *read) {
    if (!reads)
        trace_add(TRACE_OBSERVED, path, id, read);
}

void trace_bytes(int64_t bytes) {
    reads = false;
    if (head != NULL && last != NULL)
        last->bytes = bytes < 0 ? 0 : (uint64_t)bytes;
}

void trace_begun(void) {
    if (head != NULL)
        atomic_fetch_add(&head->begun, 1);
}

void trace_reached(size_t lane, uint64_t calls) {
    if (head != NULL && lane < TRACE_LANES)
        atomic_store(&head->reached[lane], calls);
}

void trace_ended(void) {
    if (head != NULL)
        atomic_fetch_add(&head->ended, 1);
}

void trace_waits(int more) {
    if (head != NULL)
        atomic_fetch_add(&head->waiting, (uint32_t)more);
}

void trace_failed(void) {
    if (head != NULL)
        atomic_store(&head->failed, 1);
}

/* True if no prefetch thread will go on: all have ended, none can begin, or the remaining ones have been waiting for
 * the program for some time. */
static bool are_over(int64_t *stalled) {
    uint32_t begun = atomic_load(&head->begun), ended = atomic_load(&head->ended);
    bool wait = begun > 0 && ended + atomic_load(&head->waiting) >= begun;
    *stalled = wait ? *stalled + LOOK : 0;
    return atomic_load(&head->failed) != 0 || (begun > 0 && ended >= begun) || *stalled > STALLED;
}

static void look_later(void) {
    nanosleep(&(struct timespec){.tv_nsec = LOOK}, NULL);
}

void trace_follow(size_t lane, uint64_t id) {
    if (head == NULL || lane >= TRACE_LANES)
        return;
    int error = errno;
    int64_t stalled = 0;
    while (atomic_load(&head->reached[lane]) <= id && atomic_load(&followed) < PATIENCE && !are_over(&stalled)) {
        look_later();
        atomic_fetch_add(&followed, LOOK);
    }
    errno = error;
}

void trace_linger(void) {
    if (head == NULL || getpid() != owner)
        return;
    int64_t stalled = 0;
    for (int64_t waited = 0; waited < PATIENCE && !are_over(&stalled); waited += LOOK)
        look_later();
}
