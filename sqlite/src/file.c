/* See file.h. */
#include "file.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef SYS_cachestat
#define SYS_cachestat 451 /* the same number on every architecture */
#endif

/* First the path is found without opening it (O_PATH): beside a database there may be a device or a FIFO, which must not be opened.
 * Then the file that was found is opened, and not another one that has replaced it. */
bool file_open(struct file *file, const char *path, struct stat *facts)
{
    struct stat own;
    char name[48];
    int place = open(path, O_PATH | O_CLOEXEC);
    file->fd = -1;
    if (place < 0)
        return false;
    facts = facts ? facts : &own;
    if (fstat(place, facts) == 0 && S_ISREG(facts->st_mode)) {
        snprintf(name, sizeof name, "/proc/thread-self/fd/%d", place);
        file->fd = open(name, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    }
    close(place);
    return file->fd >= 0;
}

void file_close(struct file *file)
{
    if (file->fd >= 0)
        close(file->fd);
    file->fd = -1;
}

bool file_read(const struct file *file, uint64_t offset, void *into, size_t length)
{
    size_t have = 0;
    while (have < length) {
        ssize_t got = pread(file->fd, (char *)into + have, length - have, (off_t)(offset + have));
        if (got <= 0)
            return false;
        have += (size_t)got;
    }
    return true;
}

/* Uses mincore on a temporary mapping, which is never touched, so it cannot fault. */
static bool mapped_resident(const struct file *file, uint64_t offset, uint64_t length)
{
    unsigned char present[64];
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE), most = sizeof present * page;
    uint64_t end = offset + length, at = offset - offset % page;
    bool resident = true;
    for (; resident && at < end; at += most) {
        size_t span = end - at < most ? (size_t)(end - at) : (size_t)most;
        void *mapping = mmap(NULL, span, PROT_NONE, MAP_SHARED, file->fd, (off_t)at);
        if (mapping == MAP_FAILED)
            return false;
        resident = mincore(mapping, span, present) == 0;
        for (size_t i = 0; i < (span + page - 1) / page; i++)
            resident = resident && (present[i] & 1);
        munmap(mapping, span);
    }
    return resident;
}

bool file_resident(struct file *file, uint64_t offset, uint64_t length)
{
    struct {
        uint64_t offset, length;
    } range = {offset, length};
    struct {
        uint64_t cached, dirty, writeback, evicted, recently_evicted;
    } counts;
    if (!file->no_cachestat) {
        uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
        if (syscall(SYS_cachestat, file->fd, &range, &counts, 0) == 0)
            return counts.cached > (offset + length - 1) / page - offset / page;
        file->no_cachestat = true;
    }
    return mapped_resident(file, offset, length);
}

void file_fetch(const struct file *file, uint64_t offset, uint64_t length)
{
    posix_fadvise(file->fd, (off_t)offset, (off_t)length, POSIX_FADV_WILLNEED);
}

uint64_t file_bytes(const struct file *file)
{
    struct stat facts;
    return fstat(file->fd, &facts) == 0 ? (uint64_t)facts.st_size : 0;
}
