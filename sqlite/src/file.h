/* The planner's own view of a database file: its descriptor, its pages, their residency.
 *
 * Purpose: `struct pages` on a real file.
 * Invariant: used on the planner's thread alone, whose descriptor table is its own: a descriptor of
 * a database closed in the program's table would drop SQLite's POSIX locks. Never writes, never locks.
 * Data flow: a path and the identity the file must have in; pages and hints out. */
#ifndef FOREREAD_FILE_H
#define FOREREAD_FILE_H

#include <sys/types.h>

#include "pages.h"

struct file {
    int fd; /* -1 when closed */
    uint32_t page_size;
    bool no_cachestat; /* the kernel is older than 6.5: mincore has to tell */
};

/* False when the path is not, or not any more, the regular file with this device and inode. */
bool file_open(struct file *file, const char *path, dev_t device, ino_t inode);

void file_close(struct file *file);

bool file_header(const struct file *file, struct btree_header *header);

/* The members of struct pages; the context is the file. */
bool file_read(const struct file *file, uint32_t page, uint8_t *into);
bool file_resident(struct file *file, uint32_t page);
void file_fetch(const struct file *file, uint32_t *pages, size_t n);

/* How many pages the file has now. */
uint64_t file_pages(const struct file *file);

#endif
