/*
 * mappings.c - mapped files: private copies in place of the program's mappings, and touches announced.
 *
 * A value that the slice needs is read in place: the page fault fetches it. One that it does not need is
 * announced by prefetch_touch().
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "files.h"
#include "lane.h"
#include "prefetch.h"

struct mapping {
    struct mapping *next;
    uintptr_t start, end;
    int64_t offset;
    /* Its own: the slice may close the one it mapped. */
    int fd;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct mapping *mappings;

/* Writes down what is mapped where; if it cannot, touches of it are not announced. */
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
        if (!there && fcntl(fd, F_GETFD) < 0) {
            errno = EBADF;
            return MAP_FAILED;
        }
        /* What cannot be opened reads as zeroes. */
        if (!there)
            flags |= MAP_ANONYMOUS;
    }
    bool anonymous = (flags & MAP_ANONYMOUS) != 0;
    void *mapped =
        mmap(address, bytes, protection, flags, anonymous ? -1 : fd, anonymous ? 0 : offset);
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

void prefetch_touch(const void *address, size_t bytes) {
    uintptr_t start = (uintptr_t)address;
    struct file *file = NULL;
    int fd = -1;
    uint64_t offset = 0, there = 0;
    pthread_mutex_lock(&lock);
    for (struct mapping *mapping = mappings; mapping != NULL; mapping = mapping->next) {
        if (start < mapping->start || start >= mapping->end)
            continue;
        fd = mapping->fd;
        offset = (uint64_t)mapping->offset + (start - mapping->start);
        there = mapping->end - start < bytes ? mapping->end - start : bytes;
        struct opening *opening = files_lock(fd);
        if (opening != NULL) {
            file = opening->file;
            files_unlock();
        }
        break;
    }
    pthread_mutex_unlock(&lock);
    lane_read(file, fd, offset, there);
}
