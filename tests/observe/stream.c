/* A file front to back in small pieces, with a pause before the last hundred; then the program is killed, so that nothing
   can be said at its end. */
#include "observe.h"
#include <signal.h>

#define PIECE 512
#define PIECES 1000

int main(int argc, char **argv) {
    char piece[PIECE];
    int fd = check(open(argv[argc - 1], O_RDONLY));
    /* The observer looks meanwhile, and sees what the kernel tells. */
    usleep(50000);
    for (int n = 0; n < PIECES; n++) {
        if (n == PIECES - 100)
            usleep(300000);
        if (check(read(fd, piece, PIECE)) != PIECE)
            return 1;
    }
    return raise(SIGKILL);
}
