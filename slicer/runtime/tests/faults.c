/* faults.c - the program neither notices errors of its prefetch thread nor waits for it. */
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

/* Volatile, so that the compiler does not remove the faults. */
static volatile int zero;
static int *volatile nowhere;

static void segv(int argc, char **argv) {
    (void)argc, (void)argv;
    *nowhere = 1;
}

static void fpe(int argc, char **argv) {
    (void)argv;
    zero = argc / zero;
}

/* A page beyond the end of a mapped file. */
static void bus(int argc, char **argv) {
    (void)argc;
    int fd = prefetch_open(argv[2], O_RDONLY);
    volatile char *mapped = prefetch_mmap(NULL, 8 * 4096, PROT_READ, MAP_SHARED, fd, 0);
    zero = mapped[7 * 4096];
}

static int deep(int n) {
    volatile char frame[4096];
    frame[n % 4096] = (char)n;
    return nowhere == NULL ? deep(n + 1) + frame[0] : n;
}

static void stack(int argc, char **argv) {
    (void)argv;
    zero = deep(argc);
}

static void loop(int argc, char **argv) {
    (void)argc, (void)argv;
    while (zero == 0)
        ;
}

static void aborts(int argc, char **argv) {
    (void)argc, (void)argv;
    abort();
}

static void exits(int argc, char **argv) {
    (void)argc, (void)argv;
    exit(3);
}

static void exits_at_once(int argc, char **argv) {
    (void)argc, (void)argv;
    _exit(3);
}

/* The C library detects this, reports it on stderr, and aborts. */
static void heap(int argc, char **argv) {
    (void)argc, (void)argv;
    void (*volatile release)(void *) = free;
    void *block = malloc(24);
    release(block);
    release(block);
}

static void memory(int argc, char **argv) {
    (void)argc, (void)argv;
    for (;;) {
        char *volatile block = malloc(64 << 20);
        if (block == NULL)
            abort();
        memset(block, 1, 4096);
    }
}

static void descriptors(int argc, char **argv) {
    (void)argc;
    setrlimit(RLIMIT_NOFILE, &(struct rlimit){1000, 1000});
    while (prefetch_open(argv[2], O_RDONLY) >= 0)
        ;
}

/* Signal handlers of the program, which must not run for the slice. */
static void handle(int number) {
    (void)number;
    printf("handled\n");
    exit(1);
}

static int reads(const char *path, int count) {
    signal(SIGSEGV, handle);
    signal(SIGABRT, handle);
    int fd = open(path, O_RDONLY);
    char page[4096];
    long sum = 0;
    for (int n = 0; n < count; n++) {
        sum += pread(fd, page, sizeof page, 0) + page[0];
        foreread_call();
        sleep_ms(5);
    }
    printf("%ld\n", sum);
    return 42;
}

static int program(int argc, char **argv) {
    (void)argc;
    return reads(argv[2], 40);
}

static int long_program(int argc, char **argv) {
    (void)argc;
    return reads(argv[2], 120);
}

static void unharmed(const char *scenario, int count, const char *ended) {
    const char *file = make_file("four", 4);
    struct outcome outcome = run(scenario, file);
    CHECK(WIFEXITED(outcome.status) && WEXITSTATUS(outcome.status) == 42);
    char expected[32];
    snprintf(expected, sizeof expected, "%d\n", count * (4096 + '0'));
    CHECK(strcmp(outcome.out, expected) == 0);
    CHECK(outcome.seconds < HANGS);
    if (ended == NULL)
        CHECK(outcome.report[0] == '\0');
    else if (strcmp(reported_text(&outcome, "ended"), ended) != 0)
        FAIL("%s: %s", scenario, outcome.report);
}

#define TEST(name, scenario, ended)                                                                \
    static void name(void) {                                                                       \
        unharmed(scenario, 40, ended);                                                                 \
    }
TEST(test_segv, "segv", "SIGSEGV")
TEST(test_fpe, "fpe", "SIGFPE")
TEST(test_bus, "bus", "SIGBUS")
TEST(test_stack, "stack", "SIGSEGV")
TEST(test_abort, "abort", "abort")
TEST(test_exit, "exit", "exit")
TEST(test_exit_at_once, "exit_at_once", NULL)
TEST(test_heap, "heap", "abort")
TEST(test_memory, "memory", "abort")
TEST(test_descriptors, "descriptors", "finished")

static void test_loop(void) {
    /* Longer than any wait for the program. */
    setenv("FOREREAD_PREEXEC_CPU", "3600", 1);
    unharmed("loop", 40, "with the program");
}

static void test_endless(void) {
    setenv("FOREREAD_PREEXEC_CPU", "0.02", 1);
    unharmed("long_loop", 120, "computes without end");
}

int main(int argc, char **argv) {
    const struct scenario scenarios[] = {
        {"segv", segv, program},
        {"fpe", fpe, program},
        {"bus", bus, program},
        {"stack", stack, program},
        {"loop", loop, program},
        {"long_loop", loop, long_program},
        {"abort", aborts, program},
        {"exit", exits, program},
        {"exit_at_once", exits_at_once, program},
        {"heap", heap, program},
        {"memory", memory, program},
        {"descriptors", descriptors, program},
        {0},
    };
    const struct test tests[] = {
        {"a wild pointer ends the slice and nothing else", test_segv},
        {"so does a division by zero", test_fpe},
        {"so does a page past a mapped file's end", test_bus},
        {"so does endless recursion", test_stack},
        {"so does abort()", test_abort},
        {"so does a heap it has destroyed", test_heap},
        {"so does taking all memory", test_memory},
        {"so does opening files without end", test_descriptors},
        {"exit() ends the slice, and the report is still written", test_exit},
        {"_exit() ends the prefetch process", test_exit_at_once},
        {"the program's end does not wait for an endless loop", test_loop},
        {"an endless loop is ended by the processor time it takes", test_endless},
        {0},
    };
    return check_main(argc, argv, scenarios, tests);
}
