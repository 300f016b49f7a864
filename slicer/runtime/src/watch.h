/* watch.h - the watcher: the thread of the prefetch process that knows where the program is. */
#ifndef WATCH_H
#define WATCH_H

#include <stdint.h>
#include <stdbool.h>

/* `cpu_ns` is what a prefetch thread may use between two calls. */
bool watch_start(int64_t cpu_ns, void (*at_end)(void));
/* Has it tell the clients the last of the program's reads, call at_end(), and end. */
void watch_end(void);

#endif
