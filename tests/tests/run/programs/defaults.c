/* Runs a program with the C library's own signals, 32 and 33, at their defaults: `posix_spawn` in a process with threads starts programs
 * with both ignored, and `sigaction` refuses them.
 *
 *     defaults PROGRAM… */
#define _GNU_SOURCE
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

int main(int argc, char **argv) {
    static const unsigned long defaults[6];
    (void)argc;
    for (int signal = 32; signal <= 33; signal++)
        if (syscall(SYS_rt_sigaction, signal, defaults, NULL, 8) != 0)
            perror("defaults");
    execvp(argv[1], argv + 1);
    perror(argv[1]);
    return 127;
}
