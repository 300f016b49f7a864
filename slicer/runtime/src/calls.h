/* calls.h - the counted calls of the program's threads. */
#ifndef CALLS_H
#define CALLS_H

#include "shared.h"
#include "trace.h"

/* Declares the calling thread the program's first. */
void calls_begin(void);
/* Gives the calling thread its path. */
void calls_begin_thread(uint64_t path);
/* For a child of fork(): its one thread stops counting. A child that was forked without the C library's knowledge
 * goes on counting in the parent's lane, which misleads only the prefetch thread. */
void calls_forget(void);
/* True if the calling thread counts; the path of the next thread that it makes; reports that it has made this
 * thread. */
bool calls_count(void);
uint64_t calls_next_path(void);
void calls_made_thread(void);
/* Counts the last characters of a thread or program that ends. */
void calls_count_last(void);
/* Writes down a read of the program, with the call ID that it has if it is counted next, or was counted before it
 * was made. Waits until the prefetch thread has come as far: the program cannot change data before the prefetch
 * thread has read it. In the prefetch process, writes down a read of the program's own code. */
void calls_write_down(const struct trace_seen *read);

#endif
