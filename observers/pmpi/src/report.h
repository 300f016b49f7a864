/* What the preload library (observers/preload, src/called.rs) offers to report calls of MPI by. Each function is null where
 * that library is not loaded: then nothing is reported. */
#ifndef FOREREAD_PMPI_REPORT_H
#define FOREREAD_PMPI_REPORT_H

#include <stdbool.h>
#include <stdint.h>

#define WEAK __attribute__((weak, visibility("default")))

/* The kinds of accesses, by their codes in foreread's records. */
enum kind { KIND_READ = 13, KIND_WRITE = 14 };

/* Whether calls are to be reported now. */
WEAK bool foreread_called_wanted(void);
/* Now, in ticks of the ring's clock. */
WEAK uint64_t foreread_called_stamp(void);
/* A file comes to be known by its path; its number in reports, 0 if it is none to report. */
WEAK uint32_t foreread_called_open(const char *path);
/* A range of a file was read or written, in bytes; start and duration in ticks. */
WEAK void foreread_called_extent(uint32_t file, uint8_t kind, uint64_t start, uint64_t took, uint64_t offset, uint64_t len);
/* This process's rank, and of how many it is one. */
WEAK void foreread_called_rank(uint32_t rank, uint32_t of);
/* Where this thread's last read of a file ended, in bytes, and how much that read; false if nothing is known of it. */
WEAK bool foreread_called_last(uint64_t *end, uint64_t *len);

#endif
