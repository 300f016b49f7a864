/* readv, preadv and preadv2, with an offset and at the cursor. */
#include "observe.h"
int main(int argc, char **argv) {
    char a[100], b[4000];
    struct iovec parts[2] = {{a, sizeof a}, {b, sizeof b}};
    int fd = check(open(argv[argc - 1], O_RDONLY));
    check(readv(fd, parts, 2));
    check(readv(fd, parts, 1));
    check(preadv(fd, parts, 2, 8000));
    check(preadv64(fd, parts, 2, 19000));
    check(preadv2(fd, parts, 2, 100, 0));
    check(preadv2(fd, parts, 1, -1, 0));
    check(preadv64v2(fd, parts, 1, 7, 0));
    check(read(fd, a, 1));
    return 0;
}
