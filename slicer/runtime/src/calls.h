/* calls.h - the counted calls of the program's threads. */
#ifndef CALLS_H
#define CALLS_H

#include "shared.h"
#include "trace.h"

/* The calling thread is the program's first. */
void calls_begin(void);
/* The calling thread is this one. */
void calls_begin_thread(uint64_t path);
/* In a child of fork(): its one thread counts nothing. What forks without the C library's knowledge goes on counting with
 * the parent's lane, which misleads the prefetch thread and nobody else. */
void calls_forget(void);
/* Whether the calling thread counts; the path of the next thread that it makes; and that it has made it. */
bool calls_count(void);
uint64_t calls_next_path(void);
void calls_made_thread(void);
/* The last characters of a thread that ends, or of the program. */
void calls_count_last(void);
/* The program's read, with the call ID it has if it is counted next, or was counted ahead of it. The prefetch thread is to
 * come as far before the program goes on: what it reads is then as the program has read it. In the prefetch process,
 * a read of the program's own code. */
void calls_write_down(const struct trace_seen *read);

#endif
