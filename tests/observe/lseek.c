/* lseek: from the start, the cursor and the end, and a failing one that moves nothing. */
#include "observe.h"
int main(int argc, char **argv) {
    char buffer[100];
    int fd = check(open(argv[argc - 1], O_RDONLY));
    check(lseek(fd, 5000, SEEK_SET));
    check(read(fd, buffer, 100));
    check(lseek(fd, 50, SEEK_CUR));
    check(read(fd, buffer, 100));
    check(lseek64(fd, -60, SEEK_END));
    check(read(fd, buffer, 100));
    if (lseek(fd, -1, SEEK_SET) != -1 || errno != EINVAL)
        return 1;
    check(lseek(fd, 0, SEEK_SET));
    check(read(fd, buffer, 7));
    check(lseek(fd, 10000, SEEK_DATA));
    check(read(fd, buffer, 8));
    return 0;
}
