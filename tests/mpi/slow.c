/* Makes each read take 50 ms, like a slow file system. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <sys/types.h>
#include <time.h>

ssize_t pread(int fd, void *buffer, size_t len, off_t offset) {
    ssize_t (*real)(int, void *, size_t, off_t) = dlsym(RTLD_NEXT, "pread");
    nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
    return real(fd, buffer, len, offset);
}
