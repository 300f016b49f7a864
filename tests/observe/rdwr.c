/* A file open for reading and writing: writes are not reported, but move the cursor. */
#include "observe.h"
int main(int argc, char **argv) {
    char buffer[100];
    int fd = check(open(argv[argc - 1], O_RDWR));
    check(read(fd, buffer, 10));
    check(write(fd, buffer, 10));
    check(read(fd, buffer, 20));
    FILE *file = need(fdopen(fd, "r+"));
    need(fgets(buffer, 9, file));
    return 0;
}
