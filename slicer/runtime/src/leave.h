/*
 * leave.h - the program ends its prefetch process, and continues when that is gone.
 *
 * Called by the runtime at the program's end, and by the replacements of calls through which a program would notice
 * the process, or leave it rights that it gives up itself (ends/). Does nothing in a process without a prefetch
 * process, nor in a child.
 */
#ifndef LEAVE_H
#define LEAVE_H

/* Longest wait, in ms. A process that ends has mostly returned its files and its memory after 0.1 ms. It yields to
 * all others: with ten more threads on the processor, 50 to 300 ms were measured; and a thread that waits for a slow
 * disk ends only after that read. At the program's end a long wait may not be worthwhile. It is before a call that
 * fails while the process exists, and if the process keeps rights that the program has given up. */
#define LEAVE_END 50
#define LEAVE_RIGHTS 1000
#define LEAVE_FILES 1000

__attribute__((visibility("default"))) void foreread_leave(int __milliseconds);

#endif
