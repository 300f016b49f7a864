/*
 * program.c - the program's access to the memory that it shares with its prefetch process.
 *
 * Invariant: in a child of fork() the kernel empties the anchor's page (MADV_WIPEONFORK), so that a child finds no
 * shared memory and all calls do nothing there. The prefetch process finds none either: it was cloned before the
 * anchor was set.
 */
#include "program.h"

#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>

#include "raw.h"

/* At the beginning of a separate page. */
struct anchor {
    _Atomic(struct shared *) shared;
    pid_t program, prefetch;
    bool reports;
};

static struct anchor nowhere;
static struct anchor *anchor = &nowhere;

struct shared *program_shared(void) {
    return atomic_load_explicit(&anchor->shared, memory_order_relaxed);
}

bool program_reports(void) {
    return anchor->reports;
}

struct shared *program_part(pid_t *prefetch) {
    if (program_shared() == NULL || anchor->program != raw_call(SYS_getpid))
        return NULL;
    *prefetch = anchor->prefetch;
    return atomic_exchange(&anchor->shared, NULL);
}

bool program_is_anchored(void) {
    return anchor != &nowhere;
}

struct anchor *program_make_anchor(struct shared *shared) {
    struct anchor *made =
        mmap(NULL, sizeof *made, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (made == MAP_FAILED)
        return NULL;
    if (madvise(made, sizeof *made, MADV_WIPEONFORK) != 0) {
        munmap(made, sizeof *made);
        return NULL;
    }
    atomic_init(&made->shared, shared);
    return made;
}

void program_drop_anchor(struct anchor *made) {
    munmap(made, sizeof *made);
}

void program_anchor(struct anchor *made, pid_t prefetch, bool reports) {
    made->program = (pid_t)raw_call(SYS_getpid);
    made->prefetch = prefetch;
    made->reports = reports;
    anchor = made;
}

/* A program that runs with more rights than its user may read secrets of others, and must not trust the user's
 * environment. */
static bool is_secure(void) {
    return getauxval(AT_SECURE) != 0;
}

bool program_is_wanted(void) {
    if (is_secure())
        return false;
    const char *chosen = getenv("FOREREAD_PREEXEC");
    if (chosen != NULL && strcmp(chosen, "0") == 0)
        return false;
    /* valgrind runs the program in place of the processor, and reports about the program alone. */
    const char *preloaded = getenv("LD_PRELOAD");
    if (preloaded != NULL && strstr(preloaded, "/vgpreload_") != NULL)
        return false;
    return true;
}
