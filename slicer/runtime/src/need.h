/* need.h - finds out whether the program waits for its reads. */
#ifndef NEED_H
#define NEED_H

#include "shared.h"

/* To be called at the birth of the prefetch process, by the program's first thread. */
void need_begin(void);
/* True while this is undecided, and the prefetch process sleeps. */
bool need_is_open(struct shared *shared);
/* To be called at a call of the program's first thread, while it is undecided. */
void need_ask(struct shared *shared, struct foreread_counter *counter);
/* There is a need: wakes the prefetch process. */
void need_found(struct shared *shared);

/* In the prefetch process: sleeps until there is a need (true), or the program is over or has given up rights
 * (false). Calls prepare() at the first check at the latest: if the program is over before, the process ends without
 * it. */
bool need_await(struct shared *shared, void (*prepare)(void));

#endif
