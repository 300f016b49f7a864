/*
 * lane.h - one prefetch thread's reads, from its calls to its queue.
 *
 * Data flow: lane_read() gives a read its call ID and puts it on hold (hold.c), where it is decided whether the kernel's
 * own read-ahead does for it; what is released goes to the end of the queue and, in batches, to the list of
 * the lane's client (queue.c). The watcher (watch.c) passes what the computation thread has read and tells the client.
 */
#ifndef LANE_H
#define LANE_H

#include "queue.h"

/* The next call, which is no read. */
void lane_count(void);
/* The last call was none (FOREREAD_UNCOUNTED). */
__attribute__((visibility("default"))) void prefetch_uncount(void);
/* The next read, whose data the thread has already. */
void lane_had(struct file *file, uint64_t offset, uint64_t bytes);
/* Reads that the program's own code, run by this thread as it is, has made and counted. */
void lane_calls(unsigned n);
/* The next read: these bytes of a file, which `fd` has open. Without a file or bytes, lane_count(). */
void lane_read(struct file *file, int fd, uint64_t offset, uint64_t bytes);
/* The same for what the program looks at in a mapped file. */
void lane_look(struct file *file, int fd, uint64_t offset, uint64_t bytes);
/* Bytes that the program looks at before its next read, which this is not. */
void lane_load(struct file *file, int fd, uint64_t offset, uint64_t bytes);
/* The next read, which the thread makes for itself, of these bytes as far as it is known; in place of
 * lane_wait_begin(). Lets the program go first through what both read in order, and ends the thread if that goes on. */
int64_t lane_fetch(struct file *file, uint64_t offset, uint64_t bytes);
/* After that: how much there was to read. */
void lane_fetched(int64_t bytes);

/* A descriptor is about to be closed: what is on hold may need it to register its file. */
void lane_closes(void);

/* Around everything that may take long: releases what is on hold, and accounts for the time. */
int64_t lane_wait_begin(void);
void lane_wait_end(enum wait what, int64_t since);

#endif
