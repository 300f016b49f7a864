/* The planner's own view of a file: its bytes, and whether they are in memory.
 *
 * Purpose: to read what SQLite reads, beside it.
 * Invariant: opened and closed on the planner's thread alone, whose descriptor table is its own: a descriptor of
 * a database closed in the program's table would drop SQLite's POSIX locks. Never writes, never locks.
 * Data flow: a path in; bytes, and hints to the kernel, out. Offsets and lengths are in bytes. */
#ifndef FOREREAD_FILE_H
#define FOREREAD_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

struct file {
    int fd;            /* -1 when closed */
    bool no_cachestat; /* the kernel is older than 6.5: mincore has to tell */
};

/* False when the path is no regular file; what it is otherwise goes to `facts`, unless that is null. */
bool file_open(struct file *file, const char *path, struct stat *facts);

void file_close(struct file *file);

/* False when the file does not have all these bytes. */
bool file_read(const struct file *file, uint64_t offset, void *into, size_t length);

bool file_resident(struct file *file, uint64_t offset, uint64_t length);

/* Asks the kernel for what will be read soon. */
void file_fetch(const struct file *file, uint64_t offset, uint64_t length);

/* The length of the file now. */
uint64_t file_bytes(const struct file *file);

#endif
