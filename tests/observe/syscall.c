/* Raw system calls; those that are not observed work as well. */
#include "observe.h"
int main(int argc, char **argv) {
    char buffer[100];
    struct iovec part = {buffer, 50};
    int fd = check(syscall(SYS_openat, AT_FDCWD, argv[argc - 1], O_RDONLY));
    check(syscall(SYS_read, fd, buffer, 10L));
    check(syscall(SYS_pread64, fd, buffer, 20L, 5000L));
    check(syscall(SYS_lseek, fd, 100L, SEEK_SET));
    check(syscall(SYS_readv, fd, &part, 1));
    check(syscall(SYS_preadv, fd, &part, 1, 7000L, 0L));
    int two = check(syscall(SYS_dup, fd));
    check(syscall(SYS_read, two, buffer, 30L));
    check(syscall(SYS_close, fd));
    if (syscall(SYS_read, fd, buffer, 10L) != -1 || errno != EBADF)
        return 1;
    if (syscall(SYS_getpid) != getpid())
        return 2;
    char *map = (char *)need(syscall(SYS_mmap, 0L, 4096L, (long)PROT_READ, (long)MAP_SHARED, (long)two, 4096L));
    if (memcmp(map, "0000512\n", 8) != 0)
        return 3;
    check(syscall(SYS_munmap, map, 4096L));
    return 0;
}
