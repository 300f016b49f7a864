/* Waits for a line of input after its first read of a file, and again before its end, so that the test can look at it meanwhile. */
#include "observe.h"
int main(int argc, char **argv) {
    char buffer[64];
    int fd = check(open(argv[argc - 1], O_RDONLY));
    check(pread(fd, buffer, 1, 0));
    puts("opened");
    fflush(stdout);
    getchar();
    check(pread(fd, buffer, 2, 0)); /* takes the advice back */
    check(pread(fd, buffer, 2, 4096));
    puts("read");
    fflush(stdout);
    getchar();
    return 0;
}
