/* The collective cache, as a rank's program sees it: what the ranks' forereads have fetched of files whose file system has no
 * page cache that ranks share.
 *
 * Reads are served below MPI-IO, where the MPI library reads the file itself (below.c): within a call that reads, by the
 * thread that makes it. So collective reads, data sieving, views, datatypes, statuses and file pointers are the MPI library's
 * work, as ever, and what was served is reported like any other read. Reads within a call that writes are not served: what
 * data sieving reads there goes back to the file.
 *
 * Invariant: what is served was read from the file after it had come into the state (its size and times) in which the file is now,
 * and was when it was opened or last synced. So a file that changes, by whomever and by whatever call, is left to the file system
 * until it is opened or synced again; no list of calls that write is needed. The kernel is asked for the state at each read, in place
 * of the read. Whoever fills a page has seen the file in this state for longer than its time stamps are coarse, so that each later
 * write leads to another state. Not seen are changes that bring none: stores to a mapping whose pages were dirty before the file
 * was opened, and what other hosts write, as long as the kernel does not know it (MPI_File_sync and an open ask the server).
 *
 * A file that may be written by ranks of which some are on another host, or have no such library, is left to the file system. In
 * atomic mode nothing is served.
 *
 * No call here waits for another rank, and none makes a collective call, but where remote.h says so. Only threads of the program
 * that are in a call of MPI make calls of MPI: nothing here needs an MPI with support for threads. */
#ifndef FOREREAD_PMPI_CACHE_H
#define FOREREAD_PMPI_CACHE_H

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "report.h"

struct cached;

/* The file that this thread is in a read of, if that may be served. */
extern __thread struct cached *foreread_served __attribute__((visibility("hidden"), tls_model("initial-exec")));

/* A file is about to be opened. */
void foreread_cache_opening(void);
/* It was opened, in this mode and by the ranks of this communicator. */
void foreread_cache_opened(MPI_Comm comm, MPI_File file, const char *path, int mode);
/* It is about to be closed. */
void foreread_cache_closing(MPI_File file);
/* What others have written to it becomes visible now. */
void foreread_cache_synced(MPI_File file);
/* Its mode is atomic from now on, or not. */
void foreread_cache_atomic(MPI_File file, bool atomic);

/* This thread is in a call of this kind, and no longer. */
void foreread_cache_enter(MPI_File file, enum kind kind);
static inline void foreread_cache_leave(void) { foreread_served = NULL; }

/* How many of these bytes, from the first on, are in `buffer` now: a part of what this thread's file holds at `offset`. */
size_t foreread_cache_take(int fd, void *buffer, size_t len, off_t offset);
/* A read that was not served as a whole begins now, and has ended: `foreread_cache_missed` says when it began. */
uint64_t foreread_cache_missed(void);
void foreread_cache_read(uint64_t begun);
/* Whether anybody on this host has any page. */
bool foreread_cache_holds(void);

#endif
