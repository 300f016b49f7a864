/* outlook.c - a program that waits for no file has no prefetch process. */
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

static void slice(int argc, char **argv) {
    (void)argc, (void)argv;
}

/* The translator's text at the beginning of main. The first argument is "looks", which is not the name of a file. */
static int looks(int argc, char **argv) {
    if (foreread_may_wait(argc, argv, ""))
        foreread_create_prefetch_thread(slice, argc, argv);
    return 9;
}

/* A program that reads files which are not in its arguments. */
static int knows(int argc, char **argv) {
    char paths[4096] = {0};
    snprintf(paths, sizeof paths - 1, "%s", argv[2]);
    if (foreread_may_wait(0, NULL, paths))
        foreread_create_prefetch_thread(slice, argc, argv);
    return 9;
}

/* True if the scenario had no prefetch process. */
static bool unneeded(const char *scenario, const char *argument) {
    struct outcome outcome = run(scenario, argument);
    CHECK(WIFEXITED(outcome.status) && WEXITSTATUS(outcome.status) == 9);
    bool none = strcmp(reported_text(&outcome, "ended"), "not needed") == 0;
    /* With a prefetch process, whether the program ended before its slice began or not. */
    bool slept = strcmp(reported_text(&outcome, "ended"), "the program did not wait") == 0;
    if (!none && !slept && reported(&outcome, "threads") < 0)
        FAIL("%s", outcome.report);
    return none;
}

/* A file with more bytes than are checked in one piece. */
static const char *large_file(void) {
    return make_file("large", 1000);
}

static void test_hot(void) {
    CHECK(unneeded("looks", make_file("small", 3)));
    CHECK(unneeded("looks", large_file()));
    CHECK(unneeded("knows", large_file()));
    CHECK(unneeded("knows", path_of("missing")));
}

static void test_cold(void) {
    const char *file = make_file("small", 3);
    if (!make_cold(file))
        exit(77);
    CHECK(!unneeded("looks", file));
    CHECK(!unneeded("knows", file));
    file = large_file();
    CHECK(make_cold(file));
    CHECK(!unneeded("looks", file));
}

/* Only the last pages of a large file are cold. */
static void test_partly(void) {
    const char *file = large_file();
    if (!make_cold(file))
        exit(77);
    int fd = open(file, O_RDONLY);
    char page[4096];
    for (off_t at = 0; at < 900 * 4096; at += sizeof page)
        CHECK(pread(fd, page, sizeof page, at) == sizeof page);
    /* The kernel reads ahead no further than this. */
    CHECK(posix_fadvise(fd, 990 * 4096, 0, POSIX_FADV_DONTNEED) == 0);
    close(fd);
    CHECK(!unneeded("looks", file));
}

static void test_option(void) {
    const char *file = make_file("small", 3);
    char option[300];
    snprintf(option, sizeof option, "-f%s", file);
    CHECK(unneeded("looks", option));
    bool cold = make_cold(file);
    CHECK(!cold || !unneeded("looks", option));
    snprintf(option, sizeof option, "--file=%s", file);
    CHECK(!cold || !unneeded("looks", option));
}

/* The scenario's name is the only argument: it could be the name of a file. */
static void test_unknown(void) {
    CHECK(!unneeded("looks", NULL));
}

static void test_pipe(void) {
    const char *pipe = path_of("pipe");
    CHECK(mkfifo(pipe, 0600) == 0);
    double began = now();
    CHECK(!unneeded("looks", pipe));
    CHECK(now() - began < 10);
}

static void test_wished(void) {
    setenv("FOREREAD_PREEXEC", "1", 1);
    CHECK(!unneeded("looks", make_file("small", 3)));
}

int main(int argc, char **argv) {
    const struct scenario scenarios[] = {
        {"looks", NULL, looks},
        {"knows", NULL, knows},
        {0},
    };
    const struct test tests[] = {
        {"where all that is given is in memory nothing is born", test_hot},
        {"where it is not there is a prefetch process", test_cold},
        {"nor where a part of it is not", test_partly},
        {"a path may be a part of an option", test_option},
        {"where no path is found anything may be read", test_unknown},
        {"nothing but a file is opened", test_pipe},
        {"FOREREAD_PREEXEC=1 has it born all the same", test_wished},
        {0},
    };
    return check_main(argc, argv, scenarios, tests);
}
