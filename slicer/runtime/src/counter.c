/* counter.c - the calling thread's counter, as the header's inline functions find it. */
#include "counter.h"

struct foreread_counter counter_unknown;
_Thread_local struct foreread_counter counter_nobody = {.wake_at = UINT64_MAX};

_Thread_local struct foreread_counter *foreread_counter = &counter_unknown;
_Thread_local unsigned foreread_left = FOREREAD_CHARACTERS;
_Thread_local unsigned foreread_owed;
