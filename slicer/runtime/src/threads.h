/* threads.h - the prefetch threads: that of main, and those made by prefetch threads. */
#ifndef THREADS_H
#define THREADS_H

#include "shared.h"

/* Starts the prefetch thread of main, which runs f(NULL). */
bool threads_start(void *(*f)(void *));

/* The same as foreread_thread_path() and the functions after it, in the prefetch process. A thread that cannot be a
 * prefetch thread ends. */
uint64_t threads_path(void);
void threads_begin(uint64_t path);
_Noreturn void threads_end(void);
void threads_leave(void);

/* foreread_synchronize(point, FOREREAD_WAIT). */
void threads_wait(int point);

/* Documented in foreread_preexec.h. */
#pragma GCC visibility push(default)
int prefetch_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*f)(void *), void *argument);
_Noreturn void prefetch_exit(int status);
#pragma GCC visibility pop

#endif
