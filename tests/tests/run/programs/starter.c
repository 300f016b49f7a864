/* starter COMMAND [ARG...]: runs a command as a child, and ends with its status. */

#include <spawn.h>
#include <sys/wait.h>

extern char **environ;

int main(int argc, char **argv)
{
    pid_t child;
    int status;
    if (argc < 2 || posix_spawnp(&child, argv[1], 0, 0, argv + 1, environ) != 0)
        return 127;
    if (waitpid(child, &status, 0) != child || !WIFEXITED(status))
        return 126;
    return WEXITSTATUS(status);
}
