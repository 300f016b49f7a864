/* Pages in the segments of ranks on other hosts, by one-sided communication.
 *
 * Each rank's segment is a window. The directory of pages is spread over the ranks: a page's hash determines the rank that keeps a
 * hint where the page may be, in its segment's directory. When a rank reads by MPI-IO, it adds hints for the pages that its foreread
 * has filled. A page is read in the same order as from a segment of this host: its slot, its bytes, its slot again.
 *
 * The window is created within MPI_File_open, and freed within MPI_File_close. This needs collective calls. A rank without this
 * library would never take part in them, nor would it answer the question whether it has the library. So these calls are made only
 * if the environment states that all ranks of the job run under foreread.
 *
 * Some MPI libraries answer for a rank only while it is in a call of MPI. So the wait for a page ends after the time that the file
 * system takes for a read. After a wait without an answer, no rank is asked again before that answer has arrived. */
#ifndef FOREREAD_PMPI_REMOTE_H
#define FOREREAD_PMPI_REMOTE_H

#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>

#include "segment.h"

struct remote;

/* Opens a window to the segments of a communicator's ranks, for the file that has this device and inode on this host. `here` is true
 * if this rank needs no window, because all ranks are on its host. Null if there is no window. `own` may be null. Collective. */
struct remote *foreread_remote_open(MPI_Comm comm, const struct segment *own, uint64_t dev, uint64_t ino, bool here);
/* Frees the window. Collective; does nothing for null. */
void foreread_remote_close(struct remote *remote);

/* Adds hints for recently filled pages of this rank to the directory. */
void foreread_remote_tell(struct remote *remote);
/* Copies a piece of a page of the file in this state to `buffer`; false if no rank has it, or if the answer takes longer than
 * `patience`, in ns. */
bool foreread_remote_take(struct remote *remote, uint64_t page, uint64_t version, uint32_t from, uint32_t len, void *buffer,
                          uint64_t patience);

#endif
