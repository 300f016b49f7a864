/* watch.h - the watcher: the thread of the prefetch process that follows the program's progress. */
#ifndef WATCH_H
#define WATCH_H

#include <stdint.h>
#include <stdbool.h>

/* Starts the watcher. `cpu_ns` is the processor time that a prefetch thread may use between two calls. */
bool watch_start(int64_t cpu_ns, void (*at_end)(void));
/* Makes the watcher tell the clients the program's last reads, call at_end(), and end. */
void watch_end(void);

#endif
