/* residency.h - what is in memory already needs no library to fetch it. */
#ifndef RESIDENCY_H
#define RESIDENCY_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/syscall.h>

/* Newer than some systems' headers; the same on all architectures. */
#ifndef SYS_cachestat
#define SYS_cachestat 451
#endif

/* Whether these bytes of the file that `fd` has open, at least one, are all in the page cache, or on their way there. False
 * where it cannot be told: before Linux 6.5, and, in later ones, of a file that the user neither owns nor may write. */
bool is_resident(int fd, uint64_t offset, uint64_t bytes);

#endif
