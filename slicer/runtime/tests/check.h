/*
 * check.h - tests of the runtime's laws.
 *
 * A test file consists of scenarios and tests. A scenario is a small program with its slice, as a translator would
 * leave it. A test runs scenarios, each as a process of its own that the test watches from outside. Run
 * without arguments, the file runs its tests; exit status 0, or 1 and what failed on stderr.
 */
#ifndef CHECK_H
#define CHECK_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../foreread_preexec.h"

/* A program and its slice; both get what the test gave run(), from argv[1] on. */
struct scenario {
    const char *name;
    void (*slice)(int, char **);
    int (*program)(int, char **);
};

struct test {
    const char *behaviour;
    void (*run)(void);
};

/* Seconds after which something that should have ended hangs, however busy the machine is. */
#define HANGS 20.0

/* What a scenario came to. */
struct outcome {
    /* As wait() has it. */
    int status;
    double seconds;
    /* Standard output. */
    char out[4096];
    /* The report, or an empty string if none came within two seconds. */
    char report[2048];
};

/* Runs a scenario: argv[1] is its name, argv[2] `argument` if not NULL. Without a report where CHECK_UNREPORTED is set;
 * in the folder that CHECK_PLACE names. */
struct outcome run(const char *scenario, const char *argument);
/* A number or a string of a report; -1 or "" if it is not there. */
double reported(const struct outcome *outcome, const char *name);
const char *reported_text(const struct outcome *outcome, const char *name);
/* Whether the report says what became of every byte issued. */
bool is_closed(const struct outcome *outcome);

int check_main(int argc, char **argv, const struct scenario *scenarios, const struct test *tests);

#define FAIL(...)                                                                                  \
    do {                                                                                           \
        fprintf(stderr, "%s:%d: ", __FILE__, __LINE__);                                            \
        fprintf(stderr, __VA_ARGS__);                                                              \
        fputc('\n', stderr);                                                                       \
        exit(1);                                                                                   \
    } while (0)
#define CHECK(condition)                                                                           \
    do {                                                                                           \
        if (!(condition))                                                                          \
            FAIL("%s", #condition);                                                                \
    } while (0)
/* In a slice: the report says so. */
#define EXPECT(condition)                                                                          \
    do {                                                                                           \
        if (!(condition))                                                                          \
            abort();                                                                               \
    } while (0)

/* A file of this many pages in the tests' folder, each beginning with its number; its path. */
const char *make_file(const char *name, size_t pages);
/* A path in the tests' folder; stays for the 15 after it of this thread. */
const char *path_of(const char *name);
/* Pages of a file that are in memory. */
size_t resident(const char *path);
/* Writes the file out, and has none of it in memory; whether that worked (not on every file system). */
bool make_cold(const char *path);
/* Waits for up to twenty seconds until the condition holds; whether it does. */
bool comes_true(bool (*condition)(const void *), const void *argument);
/* In a slice: leaves a sign that it has come so far, without a call. It is the first to read a certain file. */
void leave_sign(void);
/* In a program: whether its slice has left that and has ended; a condition for comes_true(). */
bool is_slice_over(const void *unused);
/* Waits for it, however busy the machine is. */
void await_slice(void);
/* Whether there is a file of this path that is not empty; a condition for comes_true(). */
bool is_written(const void *path);
void sleep_ms(unsigned milliseconds);
double now(void);
/* Whether a prefetch process of this run is alive; a condition for comes_true(). */
bool has_prefetch_process(const void *unused);
/* The prefetch process of this run, once its slice runs. */
pid_t slicing_process(void);

#endif
