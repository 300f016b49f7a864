/* Touches pages of a mapped file, far apart and in no order, and prints them. */
#include "observe.h"
int main(int argc, char **argv) {
    struct stat file;
    unsigned long sum = 0, state = 7;
    int fd = check(open(argv[argc - 1], O_RDONLY));
    check(fstat(fd, &file));
    volatile const char *bytes = need(mmap(NULL, file.st_size, PROT_READ, MAP_SHARED, fd, 0));
    /* No pages around them are read. */
    check(madvise((void *)bytes, file.st_size, MADV_RANDOM));
    for (int i = 0; i < 200; i++) {
        state = state * 6364136223846793005ul + 1442695040888963407ul;
        /* At most one page in every 64, so that no fault maps another touched page. */
        unsigned long page = (state >> 33) % (file.st_size / 4096 / 64) * 64;
        sum += bytes[page * 4096];
        printf("%lu\n", page);
    }
    return sum > 1ul << 40;
}
