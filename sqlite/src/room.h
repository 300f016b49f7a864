/* The process's limit of memory.
 *
 * Purpose: to stand aside where prefetching would displace pages that stay in memory without it.
 * Data flow: the process's memory control groups in, bytes out. */
#ifndef FOREREAD_ROOM_H
#define FOREREAD_ROOM_H

#include <stdint.h>

/* The lowest limit of the process's memory control group and those above it, in bytes; UINT64_MAX if
 * there is no limit, or if it cannot be read. */
uint64_t room_limit(void);

#endif
