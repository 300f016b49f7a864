/* A signal handler leaves by siglongjmp in the middle of reads and opens. After a pause 200 reads of 3 bytes each follow. */
#include "observe.h"
#include <setjmp.h>
#include <signal.h>
#include <sys/time.h>
static sigjmp_buf back;
static void on_signal(int number) {
    (void)number;
    siglongjmp(back, 1);
}
int main(int argc, char **argv) {
    char buffer[64];
    int fd = check(open(argv[argc - 1], O_RDONLY));
    signal(SIGALRM, on_signal);
    volatile int left = 3000;
    struct itimerval every = {{0, 50}, {0, 50}}, never = {{0, 0}, {0, 0}};
    check(setitimer(ITIMER_REAL, &every, NULL));
    if (sigsetjmp(back, 1) != 0)
        left--;
    for (unsigned i = 0; left > 0; i++) {
        check(pread(fd, buffer, 1 + i % 60, i % 1000 * 7));
        int other = open("data", O_RDONLY);
        if (other >= 0)
            close(other);
    }
    check(setitimer(ITIMER_REAL, &never, NULL));
    signal(SIGALRM, SIG_IGN);
    /* The ring may be full of the events so far. The pause lets the reader of the ring empty it. */
    usleep(200000);
    for (int i = 0; i < 200; i++)
        check(pread(fd, buffer, 3, 10 * i));
    return 0;
}
