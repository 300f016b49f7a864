/* residency.c - asking the kernel what its page cache holds. */
#include "residency.h"
#include "raw.h"

#include <unistd.h>

/* Argument and result of cachestat(2); counts are in pages. */
struct range {
    uint64_t offset, bytes;
};
struct counts {
    uint64_t cached, dirty, writeback, evicted, recently_evicted;
};

bool is_resident(int fd, uint64_t offset, uint64_t bytes) {
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    uint64_t pages = (offset + bytes - 1) / page - offset / page + 1;
    struct range range = {offset, bytes};
    struct counts counts;
    return raw_call(SYS_cachestat, fd, &range, &counts, 0) == 0 && counts.cached == pages;
}
