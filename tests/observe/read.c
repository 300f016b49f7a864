/* read: at the cursor, including the short last read and the empty one at the end. */
#include "observe.h"
int main(int argc, char **argv) {
    char buffer[8192];
    int fd = check(open(argv[argc - 1], O_RDONLY));
    check(read(fd, buffer, 1000));
    check(read(fd, buffer, 8192));
    check(read(fd, buffer, 0));
    check(read(fd, buffer, 8192));
    check(read(fd, buffer, 8192));
    check(read(fd, buffer, 8192));
    check(close(fd));
    if (read(fd, buffer, 1) != -1 || errno != EBADF)
        return 1;
    return 0;
}
