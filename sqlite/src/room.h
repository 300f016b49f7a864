/* How much memory the process may have.
 *
 * Purpose: to stand aside where help would push out what stays in memory without.
 * Data flow: the process's memory control groups in, bytes out. */
#ifndef FOREREAD_ROOM_H
#define FOREREAD_ROOM_H

#include <stdint.h>

/* The lowest limit of the process's memory control group and those above it, in bytes; UINT64_MAX when
 * there is none or it cannot be read. */
uint64_t room_limit(void);

#endif
