/* lessee FILE OTHER...
 *
 * Holds a write lease on the file. If another process opens the file, the kernel sends SIGIO, which ends the program. Meanwhile
 * it reads the other files at places that are unpredictable in the first run, then the file itself, and prints whether it still
 * has the lease. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

int main(int count, char **arguments)
{
    static char buffer[65536];
    struct timespec pause = {0, 2000000};
    int fd = open(arguments[1], O_RDONLY);
    /* A process that opened the file before may still have it open. */
    int tries = 0;
    while (fcntl(fd, F_SETLEASE, F_WRLCK) != 0) {
        if (errno != EAGAIN || tries++ == 100)
            return 77;
        nanosleep(&pause, NULL);
    }
    for (int i = 2; i < count; i++) {
        int other = open(arguments[i], O_RDONLY);
        off_t size = lseek(other, 0, SEEK_END);
        for (off_t n = 0; n < 300; n++)
            if (pread(other, buffer, 4096, n * 7919 * 4096 % size) < 0)
                return 2;
        close(other);
        nanosleep(&pause, NULL);
    }
    while (read(fd, buffer, sizeof buffer) > 0)
        ;
    printf("lease %s\n", fcntl(fd, F_GETLEASE) == F_WRLCK ? "kept" : "lost");
    return 0;
}
