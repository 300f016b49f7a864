/* close, close_range, closefrom: a descriptor number used again means the new file. */
#include "observe.h"
#include <linux/close_range.h>
int main(int argc, char **argv) {
    char buffer[100];
    const char *data = argv[argc - 2], *other = argv[argc - 1];
    int fd = check(open(data, O_RDONLY));
    check(read(fd, buffer, 10));
    check(close(fd));
    if (check(open(other, O_RDONLY)) != fd)
        return 1;
    check(read(fd, buffer, 20));
    check(close_range(fd, fd + 10, 0));
    if (check(open(data, O_RDONLY)) != fd)
        return 2;
    check(read(fd, buffer, 30));
    /* Only marked for closing at exec, not closed. */
    check(close_range(fd, fd, CLOSE_RANGE_CLOEXEC));
    check(read(fd, buffer, 40));
    closefrom(fd);
    if (check(open(other, O_RDONLY)) != fd)
        return 3;
    check(read(fd, buffer, 50));
    int pipes[2];
    check(close(fd));
    check(pipe(pipes));
    check(write(pipes[1], "hello", 5));
    check(read(pipes[0], buffer, 5));
    return 0;
}
