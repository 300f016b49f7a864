/* Prints, in each read of a file below the MPI library, the pages that the rank's segment shows as being read: a line `shown`, with the
 * read's offset and length in bytes, and the first page and the number of pages that are shown. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/uio.h>

#include "../../observers/pmpi/src/segment.h"

static void show(off_t offset, size_t len) {
    static struct segment_header *header;
    const char *name = getenv(SEGMENT_ENV);
    if (!header && name) {
        int file = open(name + 16, O_RDWR | O_CLOEXEC);
        header = mmap(NULL, 4096, PROT_READ, MAP_SHARED, file, 0);
    }
    if (!header || header == MAP_FAILED)
        return;
    uint64_t word = atomic_load(&header->reading);
    dprintf(2, "shown %lld %zu %lu %lu\n", (long long)offset, len, (word >> 24) & ((UINT64_C(1) << 34) - 1), word & 0xffffff);
}

ssize_t pread(int fd, void *buffer, size_t len, off_t offset) {
    ssize_t (*real)(int, void *, size_t, off_t) = dlsym(RTLD_NEXT, "pread");
    show(offset, len);
    return real(fd, buffer, len, offset);
}

ssize_t pread64(int fd, void *buffer, size_t len, off_t offset) __attribute__((alias("pread")));

ssize_t preadv(int fd, const struct iovec *parts, int count, off_t offset) {
    ssize_t (*real)(int, const struct iovec *, int, off_t) = dlsym(RTLD_NEXT, "preadv");
    size_t len = 0;
    for (int one = 0; one < count; one++)
        len += parts[one].iov_len;
    show(offset, len);
    return real(fd, parts, count, offset);
}

ssize_t preadv64(int fd, const struct iovec *parts, int count, off_t offset) __attribute__((alias("preadv")));
