/* Says each signal it gets as it comes; SIGTERM ends it. */
#include <signal.h>
#include <stdio.h>

int main(void) {
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGUSR1);
    sigaddset(&signals, SIGTERM);
    sigprocmask(SIG_BLOCK, &signals, NULL);
    puts("ready");
    fflush(stdout);
    for (;;) {
        int signal = sigwaitinfo(&signals, NULL);
        puts(signal == SIGUSR1 ? "usr1" : "term");
        fflush(stdout);
        if (signal == SIGTERM)
            return 0;
    }
}
