/* lease FILE...
 *
 * Reads each file to its end and closes it, then requests a write lease of each, which is refused while another process has
 * the file open. Repeats the request for a tenth of a second, and prints the number of files whose lease was always refused. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

enum { TRIES = 50 };

static int is_leased(const char *path)
{
    struct timespec pause = {0, 2000000};
    for (int n = 0; n < TRIES; n++) {
        int fd = open(path, O_RDONLY);
        int leased = fd >= 0 && fcntl(fd, F_SETLEASE, F_WRLCK) == 0;
        if (fd >= 0)
            close(fd);
        if (leased)
            return 1;
        nanosleep(&pause, NULL);
    }
    return 0;
}

int main(int count, char **arguments)
{
    static char buffer[65536];
    int refused = 0;

    for (int i = 1; i < count; i++) {
        int fd = open(arguments[i], O_RDONLY);
        if (fd < 0)
            return 2;
        for (off_t at = 0; pread(fd, buffer, 4096, at) > 0; at += 4096)
            ;
        close(fd);
    }
    for (int i = 1; i < count; i++)
        refused += !is_leased(arguments[i]);
    printf("%d of %d refused\n", refused, count - 1);
    return 0;
}
