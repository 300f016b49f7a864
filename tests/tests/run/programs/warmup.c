/* warmup WARM HOT COUNT MICROSECONDS COLD
 *
 * Reads WARM pages of HOT one after the other, as fast as it can; then COUNT pages of COLD,
 * far apart, sleeping that long after each; prints a checksum of the bytes read. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { PAGE = 4096 };

static unsigned long read_page(int fd, unsigned long number)
{
    static unsigned char page[PAGE];

    return pread(fd, page, PAGE, number * PAGE) == PAGE ? page[number % PAGE] : 1;
}

static unsigned long pages_of(int fd)
{
    struct stat stat;

    return fstat(fd, &stat) == 0 && stat.st_size >= PAGE ? stat.st_size / PAGE : 1;
}

int main(int count, char **arguments)
{
    struct timespec pause = {0, 0};
    unsigned long sum = 0;
    int hot, cold;

    if (count != 6)
        return 2;
    hot = open(arguments[2], O_RDONLY);
    cold = open(arguments[5], O_RDONLY);
    if (hot < 0 || cold < 0)
        return 1;
    for (long n = 0, end = atol(arguments[1]), pages = pages_of(hot); n < end; n++)
        sum = sum * 31 + read_page(hot, n % pages);
    pause.tv_nsec = atol(arguments[4]) * 1000;
    for (long n = 0, end = atol(arguments[3]), pages = pages_of(cold); n < end; n++) {
        sum = sum * 31 + read_page(cold, n * 2654435761UL % pages);
        nanosleep(&pause, NULL);
    }
    printf("%016lx\n", sum);
    return 0;
}
