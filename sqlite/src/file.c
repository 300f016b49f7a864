/* See file.h. */
#include "file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef SYS_cachestat
#define SYS_cachestat 451 /* the same number on every architecture */
#endif

bool file_open(struct file *file, const char *path, dev_t device, ino_t inode)
{
    struct stat facts;
    file->fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (file->fd < 0)
        return false;
    if (fstat(file->fd, &facts) == 0 && S_ISREG(facts.st_mode) && facts.st_dev == device &&
        facts.st_ino == inode)
        return true;
    file_close(file);
    return false;
}

void file_close(struct file *file)
{
    if (file->fd >= 0)
        close(file->fd);
    file->fd = -1;
}

static bool read_whole(const struct file *file, void *into, size_t length, off_t offset)
{
    size_t have = 0;
    while (have < length) {
        ssize_t got = pread(file->fd, (char *)into + have, length - have, offset + (off_t)have);
        if (got <= 0)
            return false;
        have += (size_t)got;
    }
    return true;
}

bool file_header(const struct file *file, struct btree_header *header)
{
    uint8_t bytes[BTREE_HEADER_BYTES];
    return read_whole(file, bytes, sizeof bytes, 0) && btree_header_parse(bytes, header);
}

static off_t offset_of(const struct file *file, uint32_t page)
{
    return (off_t)(page - 1) * file->page_size;
}

bool file_read(const struct file *file, uint32_t page, uint8_t *into)
{
    return page != 0 && read_whole(file, into, file->page_size, offset_of(file, page));
}

/* mincore on a mapping made for the question: touches nothing, so it cannot fault. */
static bool mapped_resident(const struct file *file, off_t offset, size_t length)
{
    unsigned char present[BTREE_MAX_PAGE / 4096 + 1] = {0};
    off_t memory_page = sysconf(_SC_PAGESIZE), start = offset & -memory_page;
    size_t span = length + (size_t)(offset - start);
    size_t n = (span + (size_t)memory_page - 1) / (size_t)memory_page;
    void *mapping = mmap(NULL, span, PROT_NONE, MAP_SHARED, file->fd, start);
    if (mapping == MAP_FAILED)
        return false;
    bool resident = mincore(mapping, span, present) == 0;
    for (size_t i = 0; i < n; i++)
        resident = resident && (present[i] & 1);
    munmap(mapping, span);
    return resident;
}

bool file_resident(struct file *file, uint32_t page)
{
    struct {
        uint64_t offset, length;
    } range = {(uint64_t)offset_of(file, page), file->page_size};
    struct {
        uint64_t cached, dirty, writeback, evicted, recently_evicted;
    } counts;
    if (page == 0)
        return false;
    if (!file->no_cachestat) {
        uint64_t memory_page = (uint64_t)sysconf(_SC_PAGESIZE);
        if (syscall(SYS_cachestat, file->fd, &range, &counts, 0) == 0)
            return counts.cached * memory_page >= range.length;
        file->no_cachestat = true;
    }
    return mapped_resident(file, (off_t)range.offset, range.length);
}

static int by_number(const void *left, const void *right)
{
    uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;
    return a < b ? -1 : a > b;
}

void file_fetch(const struct file *file, uint32_t *pages, size_t n)
{
    qsort(pages, n, sizeof *pages, by_number);
    for (size_t i = 0; i < n;) {
        size_t end = i + 1;
        while (end < n && pages[end] <= pages[end - 1] + 1)
            end++;
        off_t from = offset_of(file, pages[i]);
        off_t to = offset_of(file, pages[end - 1]) + file->page_size;
        posix_fadvise(file->fd, from, to - from, POSIX_FADV_WILLNEED);
        i = end;
    }
}

uint64_t file_pages(const struct file *file)
{
    struct stat facts;
    return fstat(file->fd, &facts) == 0 ? (uint64_t)facts.st_size / file->page_size : 0;
}
