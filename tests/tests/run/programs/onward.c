/* Reads 300 pages of a file's first half in no order. If there is a file `killer`, it then kills its parent and reads on for
   a while. If there is that or a file `further`, it reads some pages of the second half in order, and prints whether the
   kernel reads ahead of it. */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

enum { PAGE = 4096, HALF = 2048, RANDOM = 300, SCAN = 200, LOOK = 8, AHEAD = 64 };

static int fd;

static void page(long number) {
    static char buffer[PAGE];
    if (pread(fd, buffer, PAGE, number * PAGE) != PAGE)
        _exit(1);
    usleep(1000);
}

static void in_no_order(int count) {
    for (long n = 0; n < count; n++)
        page(n * 1031 % HALF);
}

int main(int argc, char **argv) {
    if (argc < 2 || (fd = open(argv[1], O_RDONLY)) < 0)
        return 1;
    in_no_order(RANDOM);
    int killer = access("killer", F_OK) == 0;
    if (killer) {
        kill(getppid(), SIGKILL);
        for (int n = 0; n < 4; n++)
            in_no_order(RANDOM);
    } else if (access("further", F_OK) != 0) {
        return 0;
    }
    for (long n = 0; n < SCAN; n++)
        page(HALF + n);
    long there = HALF + 2 * SCAN;
    for (long n = 0; n < LOOK; n++)
        page(there + n);
    unsigned char in_memory[AHEAD];
    void *map = mmap(NULL, AHEAD * PAGE, PROT_READ, MAP_SHARED, fd, (there + LOOK) * PAGE);
    if (map == MAP_FAILED || mincore(map, AHEAD * PAGE, in_memory) != 0)
        return 1;
    int ahead = 0;
    for (int n = 0; n < AHEAD; n++)
        ahead += in_memory[n] & 1;
    puts(ahead ? "the kernel reads ahead" : "the kernel does not read ahead");
    return 0;
}
