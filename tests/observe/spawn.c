/* posix_spawn, and a child that moves the cursor it was handed. */
#include "observe.h"
extern char **environ;
int main(int argc, char **argv) {
    char buffer[100];
    int status, fd = check(open(argv[argc - 1], O_RDONLY));
    check(read(fd, buffer, 10));
    posix_spawn_file_actions_t actions;
    check(posix_spawn_file_actions_init(&actions));
    check(posix_spawn_file_actions_adddup2(&actions, fd, 0));
    char *arguments[] = {"head", "-c", "20", NULL};
    pid_t child;
    if (posix_spawnp(&child, "head", &actions, NULL, arguments, environ) != 0)
        return 1;
    check(waitpid(child, &status, 0));
    long at = check(lseek(fd, 0, SEEK_CUR));
    check(read(fd, buffer, 30));
    printf("%ld\n", at);
    return status;
}
