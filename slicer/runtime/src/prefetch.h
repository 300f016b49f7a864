/* prefetch.h - the life of the prefetch process. */
#ifndef PREFETCH_H
#define PREFETCH_H

#include <sys/types.h>

#include "shared.h"

/* What the prefetch process is born with. */
struct prefetch_birth {
    struct shared *shared;
    pid_t program;
    void (*f)(int, char **);
    int argc;
    char **argv;
};

/* Its life, on the stack it was cloned with. */
_Noreturn void prefetch_main(const struct prefetch_birth *birth);

#endif
