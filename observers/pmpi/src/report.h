/* Functions of the preload library (observers/preload, src/called.rs) that report calls of MPI. If that library is not loaded, they are
 * null, and nothing is reported. */
#ifndef FOREREAD_PMPI_REPORT_H
#define FOREREAD_PMPI_REPORT_H

#include <stdbool.h>
#include <stdint.h>

#define WEAK __attribute__((weak, visibility("default")))

/* The kinds of accesses, by their codes in foreread's records. */
enum kind { KIND_READ = 13, KIND_WRITE = 14 };

/* True if calls are to be reported now. */
WEAK bool foreread_called_wanted(void);
/* The present time, in ticks of the ring's clock. */
WEAK uint64_t foreread_called_stamp(void);
/* Registers a file by its path. Returns its number in reports; 0 if its accesses need not be reported. */
WEAK uint32_t foreread_called_open(const char *path);
/* A range of a file, in bytes, was read or written; start and duration are in ticks. */
WEAK void foreread_called_extent(uint32_t file, uint8_t kind, uint64_t start, uint64_t took, uint64_t offset, uint64_t len);
/* This process's rank, and the number of ranks. */
WEAK void foreread_called_rank(uint32_t rank, uint32_t of);
/* The end of this thread's last read of a file, and its length, both in bytes; false if they are unknown. */
WEAK bool foreread_called_last(uint64_t *end, uint64_t *len);

#endif
