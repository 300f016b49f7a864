/* A signal handler that reads, in the middle of reads. */
#include "observe.h"
#include <signal.h>
#include <sys/time.h>
static int fd;
static volatile long handled;
static void on_signal(int number) {
    char buffer[16];
    if (pread(fd, buffer, 16, 4096) == 16 && number == SIGALRM)
        handled++;
}
int main(int argc, char **argv) {
    char buffer[64];
    fd = check(open(argv[argc - 1], O_RDONLY));
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    check(sigaction(SIGALRM, &action, NULL));
    struct itimerval every = {{0, 100}, {0, 100}};
    check(setitimer(ITIMER_REAL, &every, NULL));
    for (int i = 0; i < 200000; i++)
        check(pread(fd, buffer, 64, i % 1000));
    return handled > 0 ? 0 : 1;
}
