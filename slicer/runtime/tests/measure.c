/* measure.c - what the calls cost the computation thread. */
#include <fcntl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "../foreread_preexec.h"
#include "check.h"

static void slice(int argc, char **argv) {
    (void)argc, (void)argv;
    char data[64];
    for (;;)
        foreread_receive(1, data, sizeof data);
}

static double nanoseconds(double began, double times) {
    return (now() - began) * 1e9 / times;
}

int main(int argc, char **argv) {
    /* A program of some size: its page tables are what cloning copies. */
    size_t megabytes = argc > 1 ? strtoul(argv[1], NULL, 10) : 0;
    if (megabytes > 0) {
        char *data = malloc(megabytes << 20);
        CHECK(data != NULL);
        memset(data, 1, megabytes << 20);
    }
    double began = now();
    foreread_create_prefetch_thread(slice, argc, argv);
    printf("create_prefetch_thread   %8.0f us (program of %zu MiB)\n", nanoseconds(began, 1) / 1000, megabytes);
    sleep_ms(200);
    const int times = 20000000;
    began = now();
    for (int n = 0; n < times; n++)
        foreread_call();
    printf("foreread_call            %8.1f ns\n", nanoseconds(began, times));
    const int points = 1000000;
    began = now();
    for (int n = 0; n < points; n++)
        foreread_synchronize(1, FOREREAD_SIGNAL);
    printf("synchronize, signal      %8.1f ns (nobody waits)\n", nanoseconds(began, points));
    char data[64] = {0};
    const int messages = 5000;
    began = now();
    for (int n = 0; n < messages; n++)
        foreread_send(1, data, sizeof data);
    printf("send, 64 bytes           %8.1f ns (somebody waits)\n", nanoseconds(began, messages));
    return 0;
}
