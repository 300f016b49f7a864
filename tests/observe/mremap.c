/* mremap: what moved is still the same file. */
#include "observe.h"
int main(int argc, char **argv) {
    int fd = check(open(argv[argc - 1], O_RDONLY));
    char *map = need(mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 4096));
    char *blocker = mmap(map + 4096, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (blocker == map)
        return 1;
    volatile char *moved = need(mremap(map, 4096, 3 * 4096, MREMAP_MAYMOVE));
    if (moved[2 * 4096] != '0')
        return 2;
    check(munmap((void *)moved, 3 * 4096));
    return 0;
}
