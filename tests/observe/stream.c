/* A file in small pieces, from front to back or scattered, with a pause before the last hundred; then the
   program is killed, so that nothing can be reported at its end. */
#include "observe.h"
#include <signal.h>

#define PIECE 512
#define PIECES 1000

int main(int argc, char **argv) {
    char piece[PIECE];
    int fd = check(open(argv[argc - 1], O_RDONLY));
    /* The observer looks meanwhile, and sees what the kernel reports. */
    usleep(50000);
    for (int n = 0; n < PIECES; n++) {
        if (n == PIECES - 100)
            usleep(300000);
        long got = argc > 2 ? pread(fd, piece, PIECE, n * 617 % PIECES * PIECE) : read(fd, piece, PIECE);
        if (check(got) != PIECE)
            return 1;
    }
    return raise(SIGKILL);
}
