/* Touches pages of a mapped file, far from one another, in no order, and says which. */
#include "observe.h"
int main(int argc, char **argv) {
    struct stat file;
    unsigned long sum = 0, state = 7;
    int fd = check(open(argv[argc - 1], O_RDONLY));
    check(fstat(fd, &file));
    volatile const char *bytes = need(mmap(NULL, file.st_size, PROT_READ, MAP_SHARED, fd, 0));
    /* Nothing is read around them. */
    check(madvise((void *)bytes, file.st_size, MADV_RANDOM));
    for (int i = 0; i < 200; i++) {
        state = state * 6364136223846793005ul + 1442695040888963407ul;
        /* One page of each 64 at most: no other is mapped along with it. */
        unsigned long page = (state >> 33) % (file.st_size / 4096 / 64) * 64;
        sum += bytes[page * 4096];
        printf("%lu\n", page);
    }
    return sum > 1ul << 40;
}
