/*
 * check.h - tests of the runtime.
 *
 * A test file consists of scenarios and tests. A scenario is a small program with its slice, in the form that a
 * translator would give it. A test runs scenarios, each in a separate process that the test observes from outside.
 * Without arguments the file runs its tests; exit status 0, or 1 with the failures on stderr.
 */
#ifndef CHECK_H
#define CHECK_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../foreread_preexec.h"

/* A program and its slice; both receive the test's arguments of run(), from argv[1] on. */
struct scenario {
    const char *name;
    void (*slice)(int, char **);
    int (*program)(int, char **);
};

struct test {
    const char *behaviour;
    void (*run)(void);
};

/* Seconds after which a process that should have ended counts as hanging, however busy the machine is. */
#define HANGS 20.0

/* The result of a scenario. */
struct outcome {
    /* The status as returned by wait(). */
    int status;
    double seconds;
    /* Standard output. */
    char out[4096];
    /* The report, or an empty string if none came within two seconds. */
    char report[2048];
};

/* Runs a scenario: argv[1] is its name, argv[2] `argument` if not NULL. With CHECK_UNREPORTED set there is no
 * report; the scenario runs in the folder CHECK_PLACE. */
struct outcome run(const char *scenario, const char *argument);
/* A number or a string of a report; -1 or "" if it is missing. */
double reported(const struct outcome *outcome, const char *name);
const char *reported_text(const struct outcome *outcome, const char *name);
/* True if the report accounts for every byte issued. */
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
/* For slices: a failure appears in the report. */
#define EXPECT(condition)                                                                          \
    do {                                                                                           \
        if (!(condition))                                                                          \
            abort();                                                                               \
    } while (0)

/* Creates a file of this many pages in the tests' folder, each beginning with its number; returns its path. */
const char *make_file(const char *name, size_t pages);
/* A path in the tests' folder; valid for the next 15 calls of this thread. */
const char *path_of(const char *name);
/* Pages of a file that are in memory. */
size_t resident(const char *path);
/* Writes the file out and drops it from memory; true if that worked (not on every file system). */
bool make_cold(const char *path);
/* Waits up to twenty seconds for the condition; true if it holds. */
bool comes_true(bool (*condition)(const void *), const void *argument);
/* In a slice: leaves a sign that it has come this far, without a counted call. It is the first reader of a certain
 * file. */
void leave_sign(void);
/* As leave_sign, with another file. */
void leave_sign_at(const char *path);
/* In a program: true if its slice has left the sign and has ended; a condition for comes_true(). */
bool is_slice_over(const void *unused);
/* Waits for that, however busy the machine is. */
void await_slice(void);
/* True if the path is of a file that is not empty; a condition for comes_true(). */
bool is_written(const void *path);
void sleep_ms(unsigned milliseconds);
double now(void);
/* True if a prefetch process of this run is alive; a condition for comes_true(). */
bool has_prefetch_process(const void *unused);
/* The prefetch process of this run, as soon as its slice runs. */
pid_t slicing_process(void);

#endif
