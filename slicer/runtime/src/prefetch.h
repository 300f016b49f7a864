/* prefetch.h - the life of the prefetch process. */
#ifndef PREFETCH_H
#define PREFETCH_H

#include <sys/types.h>

#include "shared.h"

/* Arguments of a new prefetch process. */
struct prefetch_birth {
    struct shared *shared;
    pid_t program;
    void (*f)(int, char **);
    int argc;
    char **argv;
};

/* Runs the process, on the stack that it was cloned with. */
_Noreturn void prefetch_main(const struct prefetch_birth *birth);

#endif
