/*
 * leave.h - the program parts with its prefetch process, and goes on when that is gone.
 *
 * Called by the runtime at the program's end, and by what stands in for calls by which a program would notice the
 * process, or leave it rights that it gives up itself (ends/). Does nothing in a process that has none, nor in a child.
 */
#ifndef LEAVE_H
#define LEAVE_H

/* How long it is waited for, in ms, at most. A process that ends has given back its files and its memory mostly after 0.1 ms. It
 * yields to all others, so that on a processor with ten more threads 50 to 300 ms were seen; and a thread of it that a slow
 * disk keeps in a read ends after that. At the program's end that may not be worth the wait, before a call that fails
 * while the process is there, and where it keeps rights that the program has given up, it is. */
#define LEAVE_END 50
#define LEAVE_RIGHTS 1000
#define LEAVE_FILES 1000

__attribute__((visibility("default"))) void foreread_leave(int __milliseconds);

#endif
