/* measure.c - cost of the calls for the computation thread, and of the prefetch process for a short program. */
#include <fcntl.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
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

/* Runs this program many times as one that lives for some ms, with or without a prefetch process. */
static void measure_short(const char *milliseconds, bool prefetched) {
    const int times = 200;
    char *const command[] = {"measure", "lives", (char *)milliseconds, NULL};
    char *const environment[] = {prefetched ? "FOREREAD_PREEXEC=1" : "FOREREAD_PREEXEC=0", NULL};
    double seconds = 0, processor = 0;
    for (int n = 0; n < times; n++) {
        double began = now();
        pid_t pid;
        CHECK(posix_spawn(&pid, "/proc/self/exe", NULL, NULL, command, environment) == 0);
        struct rusage used;
        while (wait4(-1, NULL, 0, &used) != pid)
            ;
        seconds += now() - began;
        do
            processor += (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
                         (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec) / 1e6;
        while (wait4(-1, NULL, 0, &used) > 0);
    }
    printf("a program of %s ms %-7s %5.0f us, %5.0f us of processor\n", milliseconds,
           prefetched ? "" : "without", seconds * 1e6 / times, processor * 1e6 / times);
}

/* Computes for this time and counts calls. */
static int lives(double milliseconds) {
    for (double end = now() + milliseconds / 1000; now() < end;)
        foreread_call();
    return 0;
}

int main(int argc, char **argv) {
    if (argc > 2) {
        foreread_create_prefetch_thread(slice, argc, argv);
        return lives(strtod(argv[2], NULL));
    }
    /* Prefetch processes are nobody's children: as a subreaper this process reaps them. */
    CHECK(prctl(PR_SET_CHILD_SUBREAPER, 1) == 0);
    for (const char *const *span = (const char *const[]){"0", "1", NULL}; *span != NULL; span++) {
        measure_short(*span, false);
        measure_short(*span, true);
    }
    CHECK(prctl(PR_SET_CHILD_SUBREAPER, 0) == 0);
    /* Enlarges the program: cloning copies its page tables. */
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
