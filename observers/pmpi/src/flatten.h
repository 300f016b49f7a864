/* Datatypes as lists of byte ranges.
 *
 * A list is stored as runs: `count` blocks of `len` bytes, `stride` bytes apart. A vector of a million blocks is one run. A type
 * that needs more than RUNS_MAX runs, or more than STEPS_MAX blocks to be added, is not flattened. */
#ifndef FOREREAD_PMPI_FLATTEN_H
#define FOREREAD_PMPI_FLATTEN_H

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* 2.5 MiB of runs; some milliseconds for all steps. */
enum { RUNS_MAX = 1 << 16, STEPS_MAX = 1 << 20 };

struct run {
    int64_t offset;
    uint64_t len;
    int64_t stride;
    uint64_t count;
    /* Bytes of data in the runs before it. */
    uint64_t before;
};

struct runs {
    struct run *all;
    size_t used, room;
    /* The pending block, to which the next one may be joined. */
    int64_t offset;
    uint64_t len;
    uint64_t size;
    size_t steps;
};

/* The ranges of one datatype, in the order of its type map; false if it cannot be flattened. Release the runs in either case. */
bool foreread_flatten(MPI_Datatype type, struct runs *runs);
void foreread_release(struct runs *runs);

/* Frees a datatype that the MPI library has returned, unless it is predefined. */
void foreread_free_type(MPI_Datatype type);

#endif
