/* The segments of the ranks on this host.
 *
 * Each rank's foreread makes one before it starts the rank's program: a memory file that it keeps open. The environment names the
 * own one. The others are found among the open files of the processes that the same launcher has started. So no file is left
 * behind, and no messages are needed. A segment stays mapped until the program ends, even if its owner has died. */
#ifndef FOREREAD_PMPI_HOST_H
#define FOREREAD_PMPI_HOST_H

#include <stdbool.h>
#include <stddef.h>

#include "segment.h"

/* The own segment is the first. Others are added behind it, and none is removed. */
struct host {
    struct segment *segments;
    _Atomic size_t count;
};

extern struct host foreread_host __attribute__((visibility("hidden")));

/* Maps the own segment; false if there is none. One thread at a time may be in this function and the next two. */
bool foreread_host_begin(void);
/* Maps all others, once. */
void foreread_host_meet(void);
/* Shows the own foreread that this file was opened or synced in this state, or is read past the page cache. Returns its place in the
 * header's `files`. */
uint32_t foreread_host_publish(uint64_t dev, uint64_t ino, uint64_t version, bool direct);
/* True if the rank with this number, of `of` ranks, is on this host and has opened a file with this library. */
bool foreread_host_has(uint32_t rank, uint32_t of);

#endif
