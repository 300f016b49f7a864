/* sendfile, copy_file_range and splice: with an offset of their own, and at the cursor. */
#include "observe.h"
int main(int argc, char **argv) {
    char made[4200], buffer[16];
    off_t at = 5000;
    int pipes[2];
    sprintf(made, "%s.made", argv[argc - 1]);
    int fd = check(open(argv[argc - 1], O_RDONLY));
    int out = check(open(made, O_WRONLY | O_CREAT | O_TRUNC, 0600));
    check(pipe(pipes));
    check(sendfile(out, fd, &at, 100));
    check(sendfile64(out, fd, NULL, 200));
    at = 6000;
    check(copy_file_range(fd, &at, out, NULL, 300, 0));
    check(copy_file_range(fd, NULL, out, NULL, 400, 0));
    at = 7000;
    check(splice(fd, &at, pipes[1], NULL, 500, 0));
    check(splice(fd, NULL, pipes[1], NULL, 600, 0));
    check(splice(pipes[0], NULL, out, NULL, 1100, 0));
    check(read(fd, buffer, 16));
    check(unlink(made));
    return 0;
}
