/* lister HOW WORKERS LIST DATA [WORD...]
 *
 * Reads the pages of DATA that LIST names. Each line has the first page, the number of pages, and the number of repetitions.
 * Worker k of N, a thread or a process, reads the lines k, k + N and so on, and sleeps briefly after each (computing would take
 * the processor from foreread on a small machine). HOW is "threads", "processes", or "mapped" (threads with a mapping). Kernel
 * read-ahead is switched off, so only named pages of DATA are fetched. Prints a checksum of the bytes read. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { PAGE = 4096, LINES = 1 << 16, WORKERS = 64 };

struct line {
    long first, count, times;
};

static struct line lines[LINES];
static unsigned char *mapping;
static unsigned long *sums;
static int listed, workers, data;

static unsigned long one(long page)
{
    unsigned char bytes[PAGE];
    if (mapping)
        return ((volatile unsigned char *)mapping)[page * PAGE] + page;
    if (pread(data, bytes, PAGE, page * PAGE) != PAGE)
        exit(3);
    return bytes[7] + page;
}

static void *work(void *number)
{
    struct timespec pause = {0, 20000};
    long own = (long)number;
    unsigned long sum = 0;

    for (int at = own; at < listed; at += workers) {
        for (long n = 0; n < lines[at].times; n++)
            for (long page = 0; page < lines[at].count; page++)
                sum += one(lines[at].first + page);
        nanosleep(&pause, NULL);
    }
    sums[own] = sum;
    return NULL;
}

int main(int count, char **arguments)
{
    pthread_t threads[WORKERS];
    unsigned long sum = 0;
    struct stat stat;
    FILE *list;

    if (count < 5 || (workers = atoi(arguments[2])) < 1 || workers > WORKERS)
        return 2;
    list = fopen(arguments[3], "r");
    data = open(arguments[4], O_RDONLY);
    if (!list || data < 0 || fstat(data, &stat) || posix_fadvise(data, 0, 0, POSIX_FADV_RANDOM))
        return 2;
    while (listed < LINES && fscanf(list, "%ld %ld %ld", &lines[listed].first, &lines[listed].count, &lines[listed].times) == 3)
        listed++;
    sums = mmap(NULL, sizeof(*sums) * WORKERS, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (!strcmp(arguments[1], "mapped")) {
        mapping = mmap(NULL, stat.st_size, PROT_READ, MAP_SHARED, data, 0);
        madvise(mapping, stat.st_size, MADV_RANDOM);
    }
    for (long n = 0; n < workers; n++) {
        if (strcmp(arguments[1], "processes")) {
            if (pthread_create(&threads[n], NULL, work, (void *)n))
                return 2;
        } else if (fork() == 0) {
            work((void *)n);
            return 0;
        }
    }
    for (int n = 0; n < workers; n++) {
        if (strcmp(arguments[1], "processes"))
            pthread_join(threads[n], NULL);
        else
            wait(NULL);
    }
    for (int n = 0; n < workers; n++)
        sum += sums[n];
    if (mapping) {
        /* Mappings are sampled every 5 ms from outside; touches in the last interval would not be seen. */
        struct timespec rest = {.tv_nsec = 50000000};
        nanosleep(&rest, NULL);
    }
    printf("%lu\n", sum);
    return 0;
}
