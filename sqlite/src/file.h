/* The planner's access to a file: its bytes, and whether they are in memory.
 *
 * Purpose: to read a database beside SQLite.
 * Invariant: opened and closed only on the planner's thread, which has its own descriptor table. Closing a
 * descriptor of a database in the program's table would drop SQLite's POSIX locks. Never writes, never locks.
 * Data flow: a path in; bytes, and hints to the kernel, out. Offsets and lengths are in bytes. */
#ifndef FOREREAD_FILE_H
#define FOREREAD_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

struct file {
    int fd;            /* -1 when closed */
    bool no_cachestat; /* the kernel is older than 6.5: mincore is used */
};

/* False if the path is no regular file that can be opened. Its facts are stored in `facts`, unless that is null. */
bool file_open(struct file *file, const char *path, struct stat *facts);

void file_close(struct file *file);

/* False if not all of these bytes can be read. */
bool file_read(const struct file *file, uint64_t offset, void *into, size_t length);

/* True if all of these bytes are in memory; false also if that is unknown. `length` must not be 0. */
bool file_resident(struct file *file, uint64_t offset, uint64_t length);

/* Requests bytes that will be read soon from the kernel. */
void file_fetch(const struct file *file, uint64_t offset, uint64_t length);

/* The present length of the file; 0 if it is unknown. */
uint64_t file_bytes(const struct file *file);

#endif
