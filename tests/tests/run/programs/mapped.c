/* Maps files and touches some of their pages, with pauses in which it can be sampled. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

enum { PAGE = 4096 };

static void look(void) {
    struct timespec pause = {0, 150 * 1000 * 1000};
    nanosleep(&pause, NULL);
}

static volatile char *map(void *at, int fd, int flags, long first, long count) {
    char *map = mmap(at, count * PAGE, PROT_READ, flags, fd, first * PAGE);
    if (map == MAP_FAILED || madvise(map, count * PAGE, MADV_RANDOM) != 0) {
        perror("mmap");
        exit(1);
    }
    return map;
}

static void pages(int fd) {
    posix_fadvise(fd, 0, 0, POSIX_FADV_RANDOM);
    volatile char *private = map(NULL, fd, MAP_PRIVATE, 0, 256);
    private[40 * PAGE];
    private[41 * PAGE];
    look();
    munmap((void *)private, 256 * PAGE);
    volatile char *shared = map(NULL, fd, MAP_SHARED, 256, 64);
    shared[1 * PAGE];
    look();
    /* Half of the mapping is removed, the rest stays to the end. */
    munmap((void *)shared, 32 * PAGE);
    shared[33 * PAGE];
    map(NULL, fd, MAP_PRIVATE | MAP_POPULATE, 512, 16);
    volatile char *fixed = map(NULL, fd, MAP_SHARED, 600, 4);
    fixed[0];
    look();
    /* Other memory replaces the mapping. */
    mmap((void *)fixed, 4 * PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    /* A moved mapping is still of the same file. */
    void *old = (void *)map(NULL, fd, MAP_SHARED, 801, 1);
    volatile char *moved = mremap(old, PAGE, 3 * PAGE, MREMAP_MAYMOVE);
    moved[0];
    moved[1 * PAGE];
    moved[2 * PAGE];
    look();
}

static int objects(void) {
    void *math = dlopen("libm.so.6", RTLD_NOW);
    double (*cosine)(double) = math ? (double (*)(double))dlsym(math, "cos") : NULL;
    int fine = cosine != NULL && cosine(0) == 1.0;
    look();
    return fine ? 0 : 1;
}

int main(int argc, char **argv) {
    int fd = argc == 3 ? open(argv[2], O_RDONLY) : -1;
    if (fd < 0)
        return 2;
    if (strcmp(argv[1], "objects") == 0)
        return objects();
    pages(fd);
    return 0;
}
