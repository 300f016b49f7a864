/* Pages in the segments of ranks on other hosts, by one-sided communication.
 *
 * Each rank's segment is a window. Who has which page is spread over the ranks: a page's hash names the rank that keeps, in its
 * segment's directory, a hint where the page may be. A rank adds what its foreread has filled when it calls MPI-IO. A page is
 * taken as from a segment of this host: its slot, its bytes, its slot again.
 *
 * The window is made within MPI_File_open, and freed within MPI_File_close. That takes collective calls, which a rank without
 * this library would never answer, and no rank can find out that another lacks it without a message that such a rank would not
 * answer either. So they are made only where the environment says that all ranks of the job run under foreread.
 *
 * Some MPI libraries answer for a rank only while that is in a call of MPI. So a page is waited for no longer than the file
 * system takes for a read; a rank that does not answer then is not asked again before it has. */
#ifndef FOREREAD_PMPI_REMOTE_H
#define FOREREAD_PMPI_REMOTE_H

#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>

#include "segment.h"

struct remote;

/* The segments of a communicator's ranks, for a file which is this one here; `here`: whether they need no window, all being on
 * this host. Null if there are none. `own` may be null. Collective. */
struct remote *foreread_remote_open(MPI_Comm comm, const struct segment *own, uint64_t dev, uint64_t ino, bool here);
/* Collective; null is nothing. */
void foreread_remote_close(struct remote *remote);

/* Adds what was filled here of late to the directory. */
void foreread_remote_tell(struct remote *remote);
/* Takes a piece of a page of the file in this state, if a rank has it; `patience` in ns. */
bool foreread_remote_take(struct remote *remote, uint64_t page, uint64_t version, uint32_t from, uint32_t len, void *buffer,
                          uint64_t patience);

#endif
