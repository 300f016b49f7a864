/* title
 *
 * Keeps a copy of its environment, as servers and interpreters do, and overwrites the kernel's copy with a title; then
 * becomes another user and starts a program. */
#define _GNU_SOURCE
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

int main(int count, char **arguments)
{
    char *end = arguments[0];
    size_t size = 0;
    int status = -1;

    for (int i = 0; i < count; i++)
        end = arguments[i] + strlen(arguments[i]) + 1;
    while (environ[size])
        size++;
    char **copy = calloc(size + 1, sizeof *copy);
    for (size_t i = 0; i < size; i++) {
        copy[i] = strdup(environ[i]);
        end = environ[i] + strlen(environ[i]) + 1;
    }
    environ = copy;
    memset(arguments[0], 'x', end - arguments[0] - 1);
    if (setgroups(0, NULL) || setgid(65534) || setuid(65534))
        return 2;
    if (fork() == 0)
        return execl("/bin/echo", "echo", "started", (char *)NULL);
    wait(&status);
    printf("%d\n", status);
    return 0;
}
