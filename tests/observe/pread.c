/* pread: reads at given offsets leave the cursor unchanged. */
#include "observe.h"
int main(int argc, char **argv) {
    char buffer[4096];
    int fd = check(open(argv[argc - 1], O_RDONLY));
    check(pread(fd, buffer, 100, 12288));
    check(pread64(fd, buffer, 4096, 0));
    check(pread(fd, buffer, 4096, 19000));
    check(pread(fd, buffer, 4096, 30000));
    check(read(fd, buffer, 10));
    if (pread(fd, buffer, 10, -5) != -1 || errno != EINVAL)
        return 1;
    return 0;
}
