/*
 * files.h - open files of the prefetch thread: the table of descriptors and their offsets (AASFP, 3.1).
 *
 * Three levels, as in the kernel: a descriptor refers to an opening, several may refer to one (dup); an opening has
 * an offset and a file; a file is a device and an inode, with a number for the lists.
 *
 * Invariant: each descriptor in the table is really open in this process, read-only, on a regular file or a folder,
 * or on /dev/null if it is blind. Only code of the program uses its kernel offset: for files that such code opened,
 * the kernel offset is the offset; for all others it is set before such code runs (files_settle()).
 */
#ifndef FILES_H
#define FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "registry.h"

enum kind {
    /* A regular file. */
    REGULAR,
    /* Does not exist yet, because the program is about to create it: reads return 0 bytes. */
    EMPTY,
    /* Anything else, or not open for reading: reads are assumed to be complete. */
    BLIND,
};

struct opening {
    enum kind kind;
    /* NULL if reads are not announced: not a regular file, or not read through the page cache (O_DIRECT). */
    struct file *file;
    int64_t offset;
    /* The last known kernel offset; and the number of runs of the program's code up to that time. */
    int64_t kernel;
    unsigned settled;
    /* The file's size when last read. */
    int64_t size;
    /* Number of descriptors and mappings. */
    unsigned uses;
    /* A duplicate that stays open, of a descriptor that code of the program opened and may close unseen. Else -1. */
    int own;
};

/* Makes room for descriptors while there is one thread: with more, the kernel takes 8 to 30 ms each time their table
 * grows. */
void files_make_room(void);
/* Opens a path as the program would, but read-only; returns a descriptor, or -1 and errno. */
int files_open(int folder, const char *path, int flags);
/* Enters a real descriptor that is not in the table yet, with its kernel offset. */
bool files_enter(int fd, int flags);
/* Opens the file of the program's descriptor `number`, under the same number if that is free; returns the
 * descriptor, or -1. */
int files_open_programs(int number);
int files_close(int fd);
/* dup() if `to` is negative, else dup2(): one opening with two descriptors. */
int files_dup(int from, int to);

/* To be called when no prefetch thread is left: closes everything but `report`, and leaves the working directory. */
void files_leave(int report);

/* To be called before code of the program that may read: sets all kernel offsets. They are read back later. */
void files_settle(void);

/* The same for mapped files (mappings.c). */
void mappings_leave(void);

/* The opening of a descriptor, locked until files_unlock(); NULL, and not locked, if it has none. A regular file
 * that code of the program opened is entered into the table here. */
struct opening *files_lock(int fd);
void files_unlock(void);

/* For a locked opening: number of bytes from an offset on, at most the requested ones. */
uint64_t opening_bytes(struct opening *opening, int fd, int64_t offset, uint64_t bytes);
int64_t opening_size(struct opening *opening, int fd);

#endif
