/* apart.h - runs a function in the program's memory, but not in its table of descriptors. */
#ifndef APART_H
#define APART_H

#include <stdbool.h>
#include <stddef.h>

/* Runs f(argument) on the given stack, in a thread with a copy of the table of descriptors, while the calling thread
 * sleeps. Nobody else sees the descriptors that it opens and closes: no number is in use, no POSIX lock is lost.
 * True if it was run. May be called in a signal handler. */
bool apart(void (*f)(void *), void *argument, char *stack, size_t bytes);

#endif
