/* residency.h - asks whether data is in memory: such data needs no library to fetch it. */
#ifndef RESIDENCY_H
#define RESIDENCY_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/syscall.h>

/* Not in the headers of older systems; the same number on all architectures. */
#ifndef SYS_cachestat
#define SYS_cachestat 451
#endif

/* True if these bytes, at least one, of the file that is open as `fd` are all in the page cache, or on their way
 * there. False if that is unknown: before Linux 6.5, and later for a file that the user neither owns nor may write. */
bool is_resident(int fd, uint64_t offset, uint64_t bytes);

#endif
