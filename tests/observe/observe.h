/* The parts that all observed programs use. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

/* Returns the value if it is no failure; otherwise ends the program. */
static long check_at(long value, int line) {
    if (value < 0) {
        fprintf(stderr, "line %d: %s\n", line, strerror(errno));
        exit(99);
    }
    return value;
}
#define check(value) check_at((long)(value), __LINE__)

/* Returns the pointer if it is valid; otherwise ends the program. */
static void *need_at(void *value, int line) {
    if (!value || value == (void *)-1) {
        fprintf(stderr, "line %d: %s\n", line, strerror(errno));
        exit(99);
    }
    return value;
}
#define need(value) need_at((void *)(value), __LINE__)

/* Stops the process if the process that started it asks for that by a variable: observers then look at the process, and let it go on. */
static void hold(void) {
    const char *parent = getenv("FOREREAD_TEST_HOLD");
    if (parent && atoi(parent) == getppid())
        raise(SIGSTOP);
}

/* Stops before the end as well. */
__attribute__((destructor)) static void hold_at_end(void) { hold(); }
