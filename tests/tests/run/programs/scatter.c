/* scatter COUNT MICROSECONDS FILE...
 *
 * Reads COUNT pages of each file in turn, far apart, sleeps that long after each (computing
 * would take the processor from foreread on a small machine), and prints a checksum of the
 * bytes read. Errors of opening and reading are part of the sum, and of the exit status.
 * Prints "ready" first, so that tests can act while it reads. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { PAGE = 4096, FILES = 16 };

static unsigned long mix(unsigned long sum, unsigned long value)
{
    return (sum ^ value) * 1099511628211UL;
}

int main(int count, char **arguments)
{
    static unsigned char page[PAGE];
    int fds[FILES], files = count - 3, failed = 0;
    unsigned long pages[FILES], sum = 0;
    struct timespec pause = {0, 0};
    long reads;

    if (files < 1 || files > FILES)
        return 2;
    reads = atol(arguments[1]);
    pause.tv_nsec = atol(arguments[2]) * 1000;
    puts("ready");
    fflush(stdout);
    for (int i = 0; i < files; i++) {
        struct stat stat;
        /* A FIFO in a file's place must not delay the program. */
        fds[i] = open(arguments[i + 3], O_RDONLY | O_NONBLOCK);
        if (fds[i] < 0) {
            printf("%s: %d\n", arguments[i + 3], errno);
            failed = 1;
            continue;
        }
        fstat(fds[i], &stat);
        pages[i] = stat.st_size > PAGE ? stat.st_size / PAGE : 1;
    }
    for (long n = 0; n < reads; n++) {
        for (int i = 0; i < files; i++) {
            long got;
            if (fds[i] < 0)
                continue;
            got = pread(fds[i], page, PAGE, n * 2654435761UL % pages[i] * PAGE);
            if (got < 0) {
                failed = 1;
                sum = mix(sum, errno);
            }
            for (long k = 0; k < got; k++)
                sum = mix(sum, page[k]);
            if (pause.tv_nsec)
                nanosleep(&pause, NULL);
        }
    }
    printf("%016lx\n", sum);
    return failed;
}
