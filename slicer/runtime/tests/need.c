/* need.c - a prefetch thread begins if the program waits, and otherwise sleeps. */
#include <pthread.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "check.h"

/* Half of the time after which a prefetch thread begins in any case (LONG_LIFE), in s. */
#define SOON 0.1
/* On a busy machine a program waits for its processor: then it is run again. */
#define TRIES 50

static void slice(int argc, char **argv) {
    (void)argc, (void)argv;
    leave_sign();
}

static double processor_time(void) {
    struct timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static void compute(double seconds) {
    for (double until = processor_time() + seconds; processor_time() < until;)
        ;
}

/* Steps that a program repeats. */
static void reads_at_once(void) {
    compute(20e-6);
    foreread_call();
}

static void waits(void) {
    foreread_call();
    sleep_ms(1);
}

static void computes(void) {
    compute(1e-3);
}

/* One wait per 200 calls, but many waits. */
static void waits_seldom(void) {
    static unsigned calls;
    foreread_call();
    if (calls++ % 200 == 199)
        sleep_ms(1);
}

static void sends(void) {
    static char message[8 << 10];
    foreread_send(0, message, sizeof message);
    reads_at_once();
}

/* Time and processor time of the program at its beginning, without its start. */
static double began, computed;

static void begin(char **argv) {
    began = now();
    computed = processor_time();
    foreread_create_prefetch_thread(slice, 2, argv);
}

/* Repeats the step until the slice has begun, or for this time. Returns 9, or 8 if the machine made the program
 * wait. */
static int run_until(double seconds, void (*step)(void)) {
    while (now() - began < seconds && resident(path_of("sign")) == 0)
        for (int n = 0; n < 20; n++)
            step();
    double elapsed = now() - began;
    printf("%d", resident(path_of("sign")) != 0);
    return elapsed - (processor_time() - computed) > elapsed / 16 ? 8 : 9;
}

static int does(char **argv, double seconds, void (*step)(void)) {
    begin(argv);
    return run_until(seconds, step);
}

static int soon_reads(int argc, char **argv) {
    (void)argc;
    return does(argv, SOON, reads_at_once);
}

static int long_reads(int argc, char **argv) {
    (void)argc;
    return does(argv, 20, reads_at_once);
}

static int soon_waits(int argc, char **argv) {
    (void)argc;
    return does(argv, SOON, waits);
}

static int soon_waits_seldom(int argc, char **argv) {
    (void)argc;
    return does(argv, SOON, waits_seldom);
}

static int soon_computes(int argc, char **argv) {
    (void)argc;
    return does(argv, SOON, computes);
}

static int soon_sends(int argc, char **argv) {
    (void)argc;
    return does(argv, SOON, sends);
}

static void *second(void *argument) {
    foreread_call();
    return argument;
}

static int soon_threads(int argc, char **argv) {
    (void)argc;
    begin(argv);
    foreread_call();
    pthread_t thread;
    CHECK(foreread_pthread_create(&thread, NULL, second, NULL) == 0 && pthread_join(thread, NULL) == 0);
    return run_until(SOON, reads_at_once);
}

/* True if the slice began in one of the runs. */
static bool comes(const char *scenario) {
    for (int tries = 0; tries < TRIES; tries++)
        if (run(scenario, NULL).out[0] == '1')
            return true;
    return false;
}

static void test_sleeps(void) {
    for (int tries = 0; tries < TRIES; tries++) {
        struct outcome outcome = run("soon_reads", NULL);
        CHECK(WIFEXITED(outcome.status));
        if (WEXITSTATUS(outcome.status) == 8)
            continue;
        CHECK(outcome.out[0] == '0');
        CHECK(strcmp(reported_text(&outcome, "ended"), "the program did not wait") == 0);
        return;
    }
    exit(77);
}

static void test_long(void) {
    CHECK(run("long_reads", NULL).out[0] == '1');
}

static void test_waits(void) {
    CHECK(comes("soon_waits"));
}

static void test_waits_seldom(void) {
    CHECK(comes("soon_waits_seldom"));
}

static void test_computes(void) {
    CHECK(comes("soon_computes"));
}

static void test_sends(void) {
    CHECK(comes("soon_sends"));
}

static void test_threads(void) {
    CHECK(comes("soon_threads"));
}

static void test_wished(void) {
    setenv("FOREREAD_PREEXEC", "1", 1);
    CHECK(comes("soon_reads"));
}

int main(int argc, char **argv) {
    const struct scenario scenarios[] = {
        {"soon_reads", NULL, soon_reads},
        {"long_reads", NULL, long_reads},
        {"soon_waits", NULL, soon_waits},
        {"soon_waits_seldom", NULL, soon_waits_seldom},
        {"soon_computes", NULL, soon_computes},
        {"soon_sends", NULL, soon_sends},
        {"soon_threads", NULL, soon_threads},
        {0},
    };
    const struct test tests[] = {
        {"where the program reads without waiting its prefetch thread does not begin", test_sleeps},
        {"but where it does so for long", test_long},
        {"and where it waits", test_waits},
        {"be it seldom, if long in all", test_waits_seldom},
        {"and where it has not read yet", test_computes},
        {"and where messages fill the ring", test_sends},
        {"and where a second thread reads", test_threads},
        {"FOREREAD_PREEXEC=1 has it begin at once", test_wished},
        {0},
    };
    return check_main(argc, argv, scenarios, tests);
}
