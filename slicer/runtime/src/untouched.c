/*
 * untouched.c - memory that the slice allocates and does not use.
 *
 * The C library's malloc() writes beside each block, so that the kernel fills a page with zeros for each block of a
 * page or more. Here a block is only an address: blocks follow each other, nothing is written beside them, and no
 * block is reused. It is real memory, filled with zeros, in case the slice writes to it.
 *
 * Invariant: addresses from `start` to `start + used` were given out here; all others are the C library's.
 */
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "../foreread_preexec.h"

/* Reserved address space, and the step in which it becomes memory, which counts towards the process's limit
 * (quarantine.c). */
#define ROOM (SIZE_MAX >> 24)
#define STEP ((size_t)64 << 20)
/* malloc()'s alignment. */
#define ALIGNED ((size_t)16)

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char *start;
static size_t used, grown;

/* True if there is memory for this many bytes more. With the lock held. */
static bool grows(size_t bytes) {
    if (start == NULL) {
        void *room = mmap(NULL, ROOM, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (room == MAP_FAILED)
            return false;
        start = room;
    }
    if (bytes > ROOM - used)
        return false;
    if (bytes <= grown - used)
        return true;
    size_t more = (used + bytes - grown + STEP - 1) & ~(STEP - 1);
    if (more > ROOM - grown || mprotect(start + grown, more, PROT_READ | PROT_WRITE) != 0)
        return false;
    grown += more;
    return true;
}

static void *place(size_t bytes) {
    size_t whole = bytes > 0 ? (bytes + ALIGNED - 1) & ~(ALIGNED - 1) : ALIGNED;
    pthread_mutex_lock(&lock);
    void *found = whole >= bytes && grows(whole) ? start + used : NULL;
    if (found != NULL)
        used += whole;
    pthread_mutex_unlock(&lock);
    return found;
}

void *prefetch_malloc(size_t bytes) {
    void *found = place(bytes);
    return found != NULL ? found : malloc(bytes);
}

void *prefetch_calloc(size_t count, size_t each) {
    size_t bytes;
    void *found = __builtin_mul_overflow(count, each, &bytes) ? NULL : place(bytes);
    return found != NULL ? found : calloc(count, each);
}

void prefetch_free(void *place) {
    if (start == NULL || (uintptr_t)place - (uintptr_t)start >= ROOM)
        free(place);
}
