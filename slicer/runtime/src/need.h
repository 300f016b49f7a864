/* need.h - whether the program waits for what it reads. */
#ifndef NEED_H
#define NEED_H

#include "shared.h"

/* At the birth of the prefetch process, by the program's first thread. */
void need_begin(void);
/* Whether that is still asked, the prefetch process asleep. */
bool need_is_open(struct shared *shared);
/* At a call of the program's first thread, while it is asked. */
void need_ask(struct shared *shared, struct foreread_counter *counter);
/* There is need: the prefetch process is to begin. */
void need_found(struct shared *shared);

/* In the prefetch process: sleeps until there is need, which is true, or the program is over, or has given up rights. At the first
 * look at the latest prepares: what is over before that is to end at once. */
bool need_await(struct shared *shared, void (*prepare)(void));

#endif
