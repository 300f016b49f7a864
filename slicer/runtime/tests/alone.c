/* alone.c - a translated program runs where prefetching is impossible or not wanted. */
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

static void slice(int argc, char **argv) {
    (void)argc;
    int fd = prefetch_open(argv[2], O_RDONLY);
    prefetch_pread(fd, 1, 8192);
    prefetch_pread(fd, 1, 0);
    leave_sign();
}

static int runs_alone(int argc, char **argv) {
    (void)argc, (void)argv;
    for (int n = 0; n < 100000; n++)
        foreread_call();
    foreread_send(1, "x", 1);
    foreread_send_fd(1, 0);
    foreread_synchronize(1, FOREREAD_SIGNAL);
    printf("ran");
    return 9;
}

static bool is_decided(const void *unused) {
    return is_slice_over(unused) || is_written(path_of("report"));
}

/* Ends when its prefetch thread has ended, or has reported that there can be none. */
static int program(int argc, char **argv) {
    CHECK(comes_true(is_decided, NULL));
    return runs_alone(argc, argv);
}

static struct outcome runs(const char *scenario) {
    const char *file = make_file("data", 4);
    if (!make_cold(file))
        exit(77);
    struct outcome outcome = run(scenario, file);
    CHECK(WIFEXITED(outcome.status) && WEXITSTATUS(outcome.status) == 9);
    CHECK(strcmp(outcome.out, "ran") == 0);
    return outcome;
}

static void test_off(void) {
    setenv("FOREREAD_PREEXEC", "0", 1);
    CHECK(runs("alone").report[0] == '\0');
}

/* The dynamic linker reports that there is no such library, and continues. */
static void test_valgrind(void) {
    setenv("LD_PRELOAD", "/nonexistent/vgpreload_core.so", 1);
    CHECK(runs("alone").report[0] == '\0');
}

static void test_no_library(void) {
    setenv("LD_LIBRARY_PATH", "/nonexistent", 1);
    struct outcome outcome = runs("program");
    if (strcmp(reported_text(&outcome, "ended"), "without libforeread") != 0)
        FAIL("%s", outcome.report);
}

/* Leaves too little memory for the shared memory. */
static void limit_memory(void) {
    unsigned long pages;
    FILE *statm = fopen("/proc/self/statm", "r");
    CHECK(statm != NULL && fscanf(statm, "%lu", &pages) == 1 && fclose(statm) == 0);
    rlim_t most = (rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE) + (512 << 10);
    CHECK(setrlimit(RLIMIT_AS, &(struct rlimit){most, most}) == 0);
}

const char *foreread_library_path;

static void test_path(void) {
    const char *folder = getenv("LD_LIBRARY_PATH");
    char path[4096];
    CHECK(folder != NULL && realpath(folder, path) != NULL);
    setenv("CHECK_LIBRARY", strcat(path, "/libforeread.so.1"), 1);
    setenv("LD_LIBRARY_PATH", "/nonexistent", 1);
    struct outcome outcome = runs("program");
    if (strcmp(reported_text(&outcome, "ended"), "finished") != 0 ||
        strcmp(reported_text(&outcome, "library"), "not needed") == 0)
        FAIL("%s", outcome.report);
}

static void test_no_memory(void) {
    struct outcome outcome = run("limited", NULL);
    CHECK(WIFEXITED(outcome.status) && WEXITSTATUS(outcome.status) == 9);
    CHECK(strcmp(outcome.out, "ran") == 0 && outcome.report[0] == '\0');
}

int main(int argc, char **argv) {
    foreread_library_path = getenv("CHECK_LIBRARY");
    if (argc > 1 && strcmp(argv[1], "limited") == 0)
        limit_memory();
    const struct scenario scenarios[] = {
        {"program", slice, program},
        {"alone", slice, runs_alone},
        {"limited", slice, runs_alone},
        {0},
    };
    const struct test tests[] = {
        {"FOREREAD_PREEXEC=0 turns it off", test_off},
        {"so does valgrind", test_valgrind},
        {"without libforeread the program runs by itself", test_no_library},
        {"or with it where the program says it is", test_path},
        {"without memory for it, too", test_no_memory},
        {0},
    };
    return check_main(argc, argv, scenarios, tests);
}
