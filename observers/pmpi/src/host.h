/* The segments of the ranks on this host.
 *
 * Each rank's foreread has made one before the rank's program was started, as a memory file that it keeps open. The own one is
 * named by the environment. The others are found among the processes that the same launcher has started: no file is left
 * behind, and nobody has to be asked. A segment stays mapped until the program ends, whoever has died. */
#ifndef FOREREAD_PMPI_HOST_H
#define FOREREAD_PMPI_HOST_H

#include <stdbool.h>
#include <stddef.h>

#include "segment.h"

/* The own segment first; more are only ever added behind. */
struct host {
    struct segment *segments;
    _Atomic size_t count;
};

extern struct host foreread_host __attribute__((visibility("hidden")));

/* Maps the own segment, if there is one. This and the next two are for one thread at a time. */
bool foreread_host_begin(void);
/* Maps all others, once. */
void foreread_host_meet(void);
/* Tells the own foreread that this file was opened or synced in this state, or that it is read past the page cache. */
void foreread_host_publish(uint64_t dev, uint64_t ino, uint64_t version, bool direct);
/* Whether the rank of this number is on this host, and has a segment. */
bool foreread_host_has(uint32_t rank, uint32_t of);

#endif
