/* vfork: changes that the child makes to its descriptors do not affect the parent's. */
#include "observe.h"
int main(int argc, char **argv) {
    char buffer[100];
    int status, fd = check(open(argv[argc - 1], O_RDONLY));
    check(read(fd, buffer, 10));
    pid_t child = vfork();
    if (child == 0) {
        close(fd);
        open("/etc/passwd", O_RDONLY);
        chdir("/");
        _exit(3);
    }
    check(waitpid(child, &status, 0));
    check(read(fd, buffer, 20));
    child = vfork();
    if (child == 0) {
        dup2(fd, 0);
        execl("/bin/cat", "cat", (char *)NULL);
        _exit(127);
    }
    check(waitpid(child, &status, 0));
    if (status != 0)
        return 1;
    check(lseek(fd, 0, SEEK_SET));
    check(read(fd, buffer, 30));
    return 0;
}
