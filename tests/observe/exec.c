/* Each member of the exec family in a child of its own, and a failing one after which the program goes on. */
#include "observe.h"
extern char **environ;
static void wait_for(pid_t child) {
    int status;
    check(waitpid(child, &status, 0));
    if (status != 0)
        exit(1);
}
int main(int argc, char **argv) {
    char *data = argv[argc - 1], buffer[10], count[2] = "1";
    char *arguments[] = {"head", "-c", count, data, NULL};
    char *nothing[] = {NULL};
    for (int i = 1; i <= 8; i++) {
        count[0] = '0' + i;
        pid_t child = check(fork());
        if (child == 0) {
            switch (i) {
            case 1: execv("/usr/bin/head", arguments); break;
            case 2: execve("/usr/bin/head", arguments, environ); break;
            case 3: execvp("head", arguments); break;
            case 4: execvpe("head", arguments, environ); break;
            case 5: execl("/usr/bin/head", "head", "-c", count, data, (char *)NULL); break;
            case 6: execlp("head", "head", "-c", count, data, (char *)NULL); break;
            case 7: execle("/usr/bin/head", "head", "-c", count, data, (char *)NULL, environ); break;
            case 8: fexecve(open("/usr/bin/head", O_RDONLY | O_CLOEXEC), arguments, environ); break;
            }
            _exit(127);
        }
        wait_for(child);
    }
    if (execv("/does/not/exist", nothing) != -1 || errno != ENOENT)
        return 2;
    int fd = check(open(data, O_RDONLY));
    check(read(fd, buffer, 9));
    return 0;
}
