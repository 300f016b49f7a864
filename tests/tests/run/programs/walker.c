/* walker LIST DATA [MIB]
 *
 * Reads the ranges of DATA that LIST names. Each line has an offset and a length in bytes; they are read in order, with a short
 * sleep after each (computing would take the processor from foreread on a small machine). With MIB, it first writes DATA with
 * that size, past memory. Prints a checksum of the bytes read. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { LONGEST = 1 << 20 };

static unsigned char bytes[LONGEST] __attribute__((aligned(4096)));

static int written(const char *name, long mib)
{
    /* Past memory: advice to drop it would be observed. */
    int data = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_DIRECT, 0600);
    if (data < 0)
        return -1;
    for (long at = 0; at < mib; at++) {
        for (long byte = 0; byte < LONGEST; byte += 512)
            memset(bytes + byte, (int)(at * 31 + byte / 512), 512);
        if (write(data, bytes, LONGEST) != LONGEST)
            return -1;
    }
    if (fsync(data) || close(data))
        return -1;
    return open(name, O_RDONLY);
}

int main(int count, char **arguments)
{
    struct timespec pause = {0, 20000};
    unsigned long sum = 0;
    long offset, length;
    int data;
    FILE *list;

    if (count < 3 || !(list = fopen(arguments[1], "r")))
        return 2;
    data = count > 3 ? written(arguments[2], atol(arguments[3])) : open(arguments[2], O_RDONLY);
    if (data < 0)
        return 2;
    while (fscanf(list, "%ld %ld", &offset, &length) == 2) {
        if (length > LONGEST || pread(data, bytes, length, offset) != length)
            return 3;
        for (long at = 0; at < length; at += 512)
            sum = sum * 31 + bytes[at];
        nanosleep(&pause, NULL);
    }
    printf("%lu\n", sum);
    return 0;
}
