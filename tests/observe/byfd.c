/* Opens, by the names of their descriptors, files that are open already: each gets another cursor in the same file. */
#include "observe.h"

int main(void) {
    static const char *const names[] = {"/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"};
    char buffer[100];
    check(read(0, buffer, 8));
    for (int n = 0; n < 3; n++) {
        int fd = open(names[n], O_RDONLY);
        check(fd);
        check(read(fd, buffer, 10 + n));
        check(pread(fd, buffer, 16, 4096 * (n + 1)));
        check(read(fd, buffer, 20));
        check(close(fd));
    }
    int status = open("/proc/self/status", O_RDONLY);
    check(status);
    check(read(status, buffer, sizeof buffer));
    return 0;
}
