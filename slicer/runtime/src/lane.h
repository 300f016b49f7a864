/*
 * lane.h - one prefetch thread's reads, from its calls to its queue.
 *
 * Data flow: lane_read() gives a read its call ID and puts it on hold (hold.c), until it is decided whether the
 * kernel's own read-ahead is enough. Released reads go to the end of the queue and, in batches, to the list of the
 * lane's client (queue.c). The watcher (watch.c) passes the reads that the computation thread has made and tells the
 * client.
 */
#ifndef LANE_H
#define LANE_H

#include "queue.h"

/* Counts the next call, which is no read. */
void lane_count(void);
/* Takes back the last count (FOREREAD_UNCOUNTED). */
__attribute__((visibility("default"))) void prefetch_uncount(void);
/* Counts the next read, whose data the thread has already. */
void lane_had(struct file *file, uint64_t offset, uint64_t bytes);
/* Counts reads made by the program's own code that this thread runs unchanged. */
void lane_calls(unsigned n);
/* Counts and announces the next read: these bytes of a file that is open as `fd`. Without a file or bytes, the same
 * as lane_count(). */
void lane_read(struct file *file, int fd, uint64_t offset, uint64_t bytes);
/* The same for bytes of a mapped file that a call of the program accesses. */
void lane_look(struct file *file, int fd, uint64_t offset, uint64_t bytes);
/* Announces bytes that the program loads before its next read. Not counted. */
void lane_load(struct file *file, int fd, uint64_t offset, uint64_t bytes);
/* Counts the next read, which the thread makes for itself, of these bytes as far as is known; replaces
 * lane_wait_begin(). Lets the program go first through data that both read in order, and ends the thread if there is
 * too much of that. */
int64_t lane_fetch(struct file *file, uint64_t offset, uint64_t bytes);
/* To be called afterwards, with the number of bytes that were read. */
void lane_fetched(int64_t bytes);

/* A descriptor is about to be closed: held reads may need it to register its file. */
void lane_closes(void);

/* Before and after operations that may take long: releases the held reads, and accounts for the time. */
int64_t lane_wait_begin(void);
void lane_wait_end(enum wait what, int64_t since);

#endif
