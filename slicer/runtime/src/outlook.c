/*
 * outlook.c - finds out whether a program may have to wait for its reads, before it has a prefetch process.
 *
 * For a short program, the birth of a prefetch process costs more than all its work. If the translator knows the
 * paths of all files that are read, as constants and as arguments of main, the files are checked first. A file that
 * is in memory is read without waiting; if all are, no process is born.
 *
 * A wrong answer only costs time. In doubt the answer is yes.
 *
 * Invariant: the program's own table of descriptors does not change (apart.c): the program may hold locks on these
 * files.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "apart.h"
#include "outlook.h"
#include "program.h"
#include "raw.h"
#include "report.h"
#include "residency.h"

/* Number of files that are checked: a program with more is not short. */
#define FILES_MOST 16
/* Parts of a file that are checked: number of pieces, at even distances, and bytes per piece. */
#define PIECES 16
#define PIECE (64u << 10)

/* Result for a path. */
enum found { NO_FILE, IN_MEMORY, COLD };

static bool found_cold;

bool outlook_found_cold(void) {
    return found_cold;
}

static bool is_in_memory(int fd, uint64_t size) {
    if (size <= PIECES * PIECE)
        return is_resident(fd, 0, size);
    uint64_t step = (size - PIECE) / (PIECES - 1);
    for (uint64_t n = 0; n < PIECES; n++)
        if (!is_resident(fd, n * step, PIECE))
            return false;
    return true;
}

/* Only a regular file is opened, since opening another may have effects. By system calls, since the program may
 * define open() itself. */
static enum found look_at(const char *path) {
    struct stat facts;
    if (raw_call(SYS_newfstatat, AT_FDCWD, path, &facts, 0) != 0 || !S_ISREG(facts.st_mode))
        return NO_FILE;
    if (facts.st_size == 0)
        return IN_MEMORY;
    int fd = (int)raw_call(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0)
        return NO_FILE;
    bool in_memory = is_in_memory(fd, (uint64_t)facts.st_size);
    raw_call(SYS_close, fd);
    found_cold |= !in_memory;
    return in_memory ? IN_MEMORY : COLD;
}

/* The part of an argument that may be a path: all of it; of an option, the text after its letter or `=`. NULL for an
 * option without. */
static const char *path_in(const char *argument) {
    if (argument[0] != '-')
        return argument;
    if (argument[1] != '-')
        return argument[1] != '\0' && argument[2] != '\0' ? argument + 2 : NULL;
    const char *value = strchr(argument, '=');
    return value != NULL ? value + 1 : NULL;
}

static bool may_wait(int argc, char **argv, const char *paths) {
    for (const char *path = paths; *path != '\0'; path += strlen(path) + 1)
        if (look_at(path) == COLD)
            return true;
    if (argc > FILES_MOST)
        return true;
    /* A path may be part of an argument: a program with arguments of which none is the path of a file may read
     * anything. */
    bool found = false, unknown = false;
    for (int n = 1; n < argc; n++) {
        const char *path = path_in(argv[n]);
        enum found here = path != NULL ? look_at(path) : NO_FILE;
        if (here == COLD)
            return true;
        found |= here == IN_MEMORY;
        unknown |= here == NO_FILE && path != NULL;
    }
    return unknown && !found;
}

static void tell_unneeded(void) {
    int fd = report_open();
    if (fd < 0)
        return;
    report_failure(fd, (pid_t)raw_call(SYS_getpid), "not needed");
    raw_call(SYS_close, fd);
}

/* A question and its answer. */
struct question {
    int argc;
    char **argv;
    const char *paths;
    bool may;
};

static void answer(void *given) {
    struct question *question = given;
    question->may = may_wait(question->argc, question->argv, question->paths);
    if (!question->may)
        tell_unneeded();
}

/* Stack of the thread that checks; a report uses most of it. */
#define STACK (32 * 1024)

int foreread_may_wait(int argc, char **argv, const char *paths) {
    /* No process will be born. */
    if (!program_is_wanted())
        return false;
    /* A number in the environment starts it in any case. */
    const char *chosen = getenv("FOREREAD_PREEXEC");
    if (chosen != NULL && *chosen != '\0')
        return true;
    char stack[STACK];
    int error = errno;
    struct question question = {argc, argv, paths, true};
    apart(answer, &question, stack, sizeof stack);
    errno = error;
    return question.may;
}
