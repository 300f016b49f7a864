/* counter.h - the calling thread's counter, and the two that belong to no lane. */
#ifndef COUNTER_H
#define COUNTER_H

#include <stdint.h>

#include "../foreread_counter.h"

/* The counter of threads before their first call: each call rings. */
extern struct foreread_counter counter_unknown;
/* The counter of threads without a lane: nobody reads it. */
extern _Thread_local struct foreread_counter counter_nobody;

#endif
