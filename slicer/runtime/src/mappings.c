/*
 * mappings.c - mapped files: private copies in place of the program's mappings, and touches announced.
 *
 * A value that the slice needs is read in place: the page fault fetches it. Other bytes are announced: by
 * prefetch_touch() with a call ID, by prefetch_load() and prefetch_loads() without one.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../foreread_preexec.h"
#include "files.h"
#include "lane.h"
#include "raw.h"

struct mapping {
    struct mapping *next;
    uintptr_t start, end;
    int64_t offset;
    /* A descriptor of its own, since the slice may close the one that it mapped. */
    int fd;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct mapping *mappings;

#define PAGE_SHIFT 12
#define PAGE (1 << PAGE_SHIFT)
/* Largest part of a range of loads that is announced as one. */
#define PIECE (64 * 1024)
/* Page of the thread's last load: most loads are of the same page. */
static _Thread_local uintptr_t last_page = UINTPTR_MAX;

/* Enters a mapping into the list. If that fails, touches of it are not announced. */
static void enter(uintptr_t start, size_t bytes, int fd, off_t offset) {
    struct mapping *mapping = malloc(sizeof *mapping);
    int own = files_dup(fd, -1);
    if (mapping == NULL || own < 0) {
        free(mapping);
        if (own >= 0)
            files_close(own);
        return;
    }
    *mapping = (struct mapping){.start = start, .end = start + bytes, .offset = offset, .fd = own};
    pthread_mutex_lock(&lock);
    mapping->next = mappings;
    mappings = mapping;
    pthread_mutex_unlock(&lock);
}

void *prefetch_mmap(void *address, size_t bytes, int protection, int flags, int fd, off_t offset) {
    flags &= ~(MAP_SHARED | MAP_SHARED_VALIDATE | MAP_POPULATE | MAP_LOCKED);
    flags |= MAP_PRIVATE;
    bool announced = false;
    if ((flags & MAP_ANONYMOUS) == 0) {
        struct opening *opening = files_lock(fd);
        bool there = opening != NULL && opening->kind == REGULAR;
        announced = there && opening->file != NULL;
        if (opening != NULL)
            files_unlock();
        if (!there && raw_call(SYS_fcntl, fd, F_GETFD) < 0) {
            errno = EBADF;
            return MAP_FAILED;
        }
        /* A file that cannot be opened reads as zeroes. */
        if (!there)
            flags |= MAP_ANONYMOUS;
    }
    bool anonymous = (flags & MAP_ANONYMOUS) != 0;
    void *mapped =
        mmap(address, bytes, protection, flags, anonymous ? -1 : fd, anonymous ? 0 : offset);
    last_page = UINTPTR_MAX;
    if (mapped != MAP_FAILED && announced)
        enter((uintptr_t)mapped, bytes, fd, offset);
    return mapped;
}

int prefetch_munmap(void *address, size_t bytes) {
    uintptr_t start = (uintptr_t)address;
    pthread_mutex_lock(&lock);
    for (struct mapping **link = &mappings; *link != NULL;) {
        struct mapping *mapping = *link;
        if (start <= mapping->start && mapping->end - start <= bytes) {
            *link = mapping->next;
            files_close(mapping->fd);
            free(mapping);
        } else {
            link = &mapping->next;
        }
    }
    pthread_mutex_unlock(&lock);
    return munmap(address, bytes);
}

void mappings_leave(void) {
    pthread_mutex_lock(&lock);
    for (struct mapping *mapping = mappings; mapping != NULL; mapping = mapping->next)
        munmap((void *)mapping->start, mapping->end - mapping->start);
    mappings = NULL;
    pthread_mutex_unlock(&lock);
}

/* The file bytes mapped at an address. */
struct mapped {
    /* NULL if no file is mapped there, or the mapping is unknown. */
    struct file *file;
    int fd;
    uint64_t offset;
    /* Mapped bytes from there on. */
    uint64_t bytes;
};

static struct mapped mapped_at(uintptr_t start) {
    struct mapped mapped = {.fd = -1};
    pthread_mutex_lock(&lock);
    for (struct mapping *mapping = mappings; mapping != NULL; mapping = mapping->next) {
        if (start < mapping->start || start >= mapping->end)
            continue;
        mapped.fd = mapping->fd;
        mapped.offset = (uint64_t)mapping->offset + (start - mapping->start);
        mapped.bytes = mapping->end - start;
        struct opening *opening = files_lock(mapping->fd);
        if (opening != NULL) {
            mapped.file = opening->file;
            files_unlock();
        }
        break;
    }
    pthread_mutex_unlock(&lock);
    return mapped;
}

static uint64_t least(uint64_t a, uint64_t b) {
    return a < b ? a : b;
}

void prefetch_touch(const void *address, size_t bytes) {
    struct mapped mapped = mapped_at((uintptr_t)address);
    lane_look(mapped.file, mapped.fd, mapped.offset, least(bytes, mapped.bytes));
}

/* In pieces, so that hold.c can recognize a stream. */
static void load_range(uintptr_t start, uint64_t bytes) {
    if (start >> PAGE_SHIFT == last_page && (start + bytes - 1) >> PAGE_SHIFT == last_page)
        return;
    struct mapped mapped = mapped_at(start);
    if (mapped.file == NULL)
        return;
    bytes = least(bytes, mapped.bytes);
    last_page = (start + bytes - 1) >> PAGE_SHIFT;
    for (uint64_t at = 0; at < bytes; at += PIECE)
        lane_load(mapped.file, mapped.fd, mapped.offset + at, least(bytes - at, PIECE));
}

void prefetch_load(const void *address, size_t bytes) {
    if (bytes > 0)
        load_range((uintptr_t)address, bytes);
}

void prefetch_loads(const void *first, const void *second, size_t bytes, size_t count) {
    intptr_t step = (intptr_t)second - (intptr_t)first;
    uintptr_t start = (uintptr_t)first;
    if (count == 0 || bytes == 0)
        return;
    if (step < -PAGE || step > PAGE) {
        for (size_t n = 0; n < count; n++, start += (uintptr_t)step)
            load_range(start, bytes);
        return;
    }
    uint64_t length = (uint64_t)(step < 0 ? -step : step) * (count - 1);
    load_range(step < 0 ? start - length : start, length + bytes);
}

void prefetch_call(void) {
    lane_count();
}
