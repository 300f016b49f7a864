/* apart.h - something done in the program's memory, and not in its table of descriptors. */
#ifndef APART_H
#define APART_H

#include <stdbool.h>
#include <stddef.h>

/* Runs f(argument) on this stack, in a thread with a copy of the table of descriptors, while the calling thread sleeps. What it
 * opens and closes nobody else sees: no number is taken, no POSIX lock is lost. Whether it was run. In a signal handler, too. */
bool apart(void (*f)(void *), void *argument, char *stack, size_t bytes);

#endif
