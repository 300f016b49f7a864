/* fork: parent and child share the cursor of a file opened before. */
#include "observe.h"
#include <signal.h>
int main(int argc, char **argv) {
    char buffer[100];
    int status, fd = check(open(argv[argc - 1], O_RDONLY));
    check(read(fd, buffer, 10));
    pid_t child = check(fork());
    if (child == 0) {
        check(read(fd, buffer, 20));
        int own = check(open(argv[argc - 1], O_RDONLY));
        check(read(own, buffer, 21));
        check(read(own, buffer, 22));
        _exit(7);
    }
    check(waitpid(child, &status, 0));
    check(read(fd, buffer, 30));
    /* By a system call that the C library does not see. */
    child = check(syscall(SYS_clone, (long)SIGCHLD, 0L, 0L, 0L, 0L));
    if (child == 0) {
        check(read(fd, buffer, 40));
        syscall(SYS_exit_group, 0);
    }
    check(waitpid(child, &status, 0));
    check(pread(fd, buffer, 50, 50));
    return 0;
}
