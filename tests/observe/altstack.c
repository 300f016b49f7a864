/* A signal handler on a stack of the traditional minimum size opens a file, reads it, and ends the program. */
#include "observe.h"
#include <signal.h>
static const char *data;
static void on_signal(int number) {
    char buffer[16];
    check(chdir("/"));
    int none = open("none", O_RDONLY);
    int fd = check(open(data, O_RDONLY));
    check(read(fd, buffer, 16));
    check(read(0, buffer, 16));
    check(close(fd));
    if (number == SIGUSR2)
        _exit(none == -1 ? 7 : 8);
}
int main(int argc, char **argv) {
    static char stack[8192];
    data = argv[argc - 1];
    stack_t alternate = {.ss_sp = stack, .ss_size = sizeof stack};
    check(sigaltstack(&alternate, NULL));
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_ONSTACK};
    check(sigaction(SIGUSR1, &action, NULL));
    check(sigaction(SIGUSR2, &action, NULL));
    raise(SIGUSR1);
    raise(SIGUSR2);
    return 0;
}
