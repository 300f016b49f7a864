/* The collective cache in a rank's program: pages that the ranks' forereads have fetched, of files whose file system has no page
 * cache that ranks share.
 *
 * Reads are served below MPI-IO, where the MPI library reads the file (below.c): only within a reading call, and only to the
 * thread that makes it. So the MPI library still does collective reads, data sieving, views, datatypes, statuses and file
 * pointers, and served reads are reported like any others. Reads within a writing call are not served, because data sieving
 * writes these bytes back to the file.
 *
 * Invariant: a served page was read from the file in the state (size and times) that the file has now, and had when it was opened
 * or last synced. So if a file changes, whoever changes it and by any call, it is left to the file system until it is opened or
 * synced again. Writing calls need not be known. At each read the kernel is asked for the file's state, in place of the read. A
 * page is filled only after the file has been in its state for longer than the resolution of its time stamps, so that each later
 * write leads to another state. Two kinds of changes leave the state as it is: stores to a mapping whose pages were dirty before
 * the file was opened, and writes of other hosts that the kernel does not know yet (MPI_File_sync and an open ask the server).
 *
 * If a file may be written by ranks on another host, or by ranks without this library, it is left to the file system. In atomic
 * mode nothing is served.
 *
 * No call here waits for another rank or makes a collective call, except where remote.h says so. Only threads of the program that
 * are in a call of MPI call MPI, so an MPI without support for threads is enough. */
#ifndef FOREREAD_PMPI_CACHE_H
#define FOREREAD_PMPI_CACHE_H

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "report.h"

struct cached;

/* The file that this thread is reading, if the read may be served. */
extern __thread struct cached *foreread_served __attribute__((visibility("hidden"), tls_model("initial-exec")));

/* A file is about to be opened. */
void foreread_cache_opening(void);
/* A file was opened, in this mode and by the ranks of this communicator. */
void foreread_cache_opened(MPI_Comm comm, MPI_File file, const char *path, int mode);
/* A file is about to be closed. */
void foreread_cache_closing(MPI_File file);
/* A file was synced: other ranks' writes to it are visible now. */
void foreread_cache_synced(MPI_File file);
/* A file's atomic mode was set or reset. */
void foreread_cache_atomic(MPI_File file, bool atomic);

/* This thread enters a call of this kind, and leaves it. */
void foreread_cache_enter(MPI_File file, enum kind kind);
static inline void foreread_cache_leave(void) { foreread_served = NULL; }

/* Copies the bytes at `offset` of `fd` to `buffer`, as far as the cache has them without a gap. Returns the number of copied
 * bytes: 0 if `fd` is not this thread's file. */
size_t foreread_cache_take(int fd, void *buffer, size_t len, off_t offset);
/* A read of these bytes, which the cache does not have as a whole, begins, and has ended. While it is under way, the own foreread leaves
 * its pages alone. foreread_cache_missed() returns its beginning, in ns. */
uint64_t foreread_cache_missed(size_t len, off_t offset);
void foreread_cache_read(uint64_t begun);
/* True if any segment on this host has a page, or had one. */
bool foreread_cache_holds(void);

#endif
