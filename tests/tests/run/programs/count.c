/* Prints each signal when it arrives; SIGTERM ends the program. */
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
