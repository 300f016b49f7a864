/* Quick reads, and occasionally one that waits for the disk. Prints each read's offset, its duration, and
   whether it waited, as seen by the program. */
#include "observe.h"
#include <sys/resource.h>
#include <time.h>

#define PAGE 4096
#define COLD 200
#define QUICK 40

static long now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1000000000L + time.tv_nsec;
}

static long waits(void) {
    struct rusage usage;
    getrusage(RUSAGE_THREAD, &usage);
    return usage.ru_nvcsw;
}

int main(int argc, char **argv) {
    static char page[PAGE];
    int fd = check(open(argv[argc - 1], O_RDONLY));
    posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
    posix_fadvise(fd, 0, 0, POSIX_FADV_RANDOM);
    for (int n = 0; n < QUICK; n++)
        check(pread(fd, page, PAGE, n * PAGE));
    /* Time for the observer to look. */
    usleep(50000);
    for (int n = QUICK; n < QUICK + COLD; n++) {
        for (int quick = 0; quick < QUICK; quick++)
            check(pread(fd, page, PAGE, quick * PAGE));
        long waited = waits(), began = now();
        check(pread(fd, page, PAGE, n * PAGE));
        long took = now() - began;
        printf("%d %ld %d\n", n * PAGE, took, waits() > waited);
    }
    return 0;
}
