/* mmap: private, shared, populated; what is touched is found when it goes away. */
#include "observe.h"
static void touch(volatile char *map, size_t page) {
    (void)map[page * 4096];
}
int main(int argc, char **argv) {
    int fd = check(open(argv[argc - 1], O_RDONLY));
    check(posix_fadvise(fd, 0, 0, POSIX_FADV_RANDOM));
    char *private = need(mmap(NULL, 1 << 20, PROT_READ, MAP_PRIVATE, fd, 0));
    check(madvise(private, 1 << 20, MADV_RANDOM));
    touch(private, 40);
    touch(private, 41);
    check(munmap(private, 1 << 20));
    char *shared = need(mmap64(NULL, 64 * 4096, PROT_READ, MAP_SHARED, fd, 256 * 4096));
    check(madvise(shared, 64 * 4096, MADV_RANDOM));
    touch(shared, 1);
    /* Half of it goes, the rest stays to the end. */
    check(munmap(shared, 32 * 4096));
    touch(shared, 33);
    need(mmap(NULL, 16 * 4096, PROT_READ, MAP_PRIVATE | MAP_POPULATE, fd, 512 * 4096));
    char *fixed = need(mmap(NULL, 4 * 4096, PROT_READ, MAP_SHARED, fd, 600 * 4096));
    touch(fixed, 0);
    need(mmap(fixed, 4 * 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0));
    return 0;
}
