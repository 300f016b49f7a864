/*
 * files.h - what the prefetch thread has open: the table of descriptors and their offsets (AASFP, 3.1).
 *
 * Three levels, as in the kernel: descriptors name openings, several may name one (dup); an opening has an
 * offset and a file; a file is a device and an inode, with a number for the lists.
 *
 * Invariant: each descriptor in the table is really open in this process, read-only, on a regular file or a folder,
 * or on /dev/null if it is blind. Its kernel offset is not used, but by code of the program's own: of files that such
 * code opened it is the offset, and of all others it is made so before such code runs (files_settle()).
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
    /* Not there yet, the program being about to make it: reads find nothing. */
    EMPTY,
    /* Anything else, or not open for reading: reads are taken to be complete. */
    BLIND,
};

struct opening {
    enum kind kind;
    /* NULL if it is not to be announced: not regular, or past the page cache (O_DIRECT). */
    struct file *file;
    int64_t offset;
    /* The kernel's, as far as is known; and how often there had been code of the program's own when it was looked at. */
    int64_t kernel;
    unsigned settled;
    /* Of the file when last looked at. */
    int64_t size;
    /* Descriptors and mappings. */
    unsigned uses;
    /* Opened by code of the program's own, which may close it unseen: a descriptor that stays. Else -1. */
    int own;
};

/* Makes room for descriptors, while there is one thread: with more, the kernel takes 8 to 30 ms each time their table
 * grows. */
void files_make_room(void);
/* Opens a path as the program would, read-only; a descriptor, or -1 and errno. */
int files_open(int folder, const char *path, int flags);
/* Enters a real descriptor that is not in the table yet, with its kernel offset. */
bool files_enter(int fd, int flags);
/* Has descriptor `fd` be the program's `number`; the descriptor it became, or -1. */
int files_open_programs(int number);
int files_close(int fd);
/* dup() if `to` is negative, else dup2(): one opening under two names. */
int files_dup(int from, int to);

/* When no prefetch thread is left: closes everything but `report`, and leaves the working directory. */
void files_leave(int report);

/* Before code of the program's own runs that may read: gives the kernel all offsets, which are then looked at again. */
void files_settle(void);

/* The same of mapped files (mappings.c). */
void mappings_leave(void);

/* The opening of a descriptor, locked until files_unlock(); NULL, and not locked, if it has none. A regular file that
 * code of the program's own opened comes into the table here. */
struct opening *files_lock(int fd);
void files_unlock(void);

/* Of an opening that is locked: bytes there are from an offset on, no more than asked for. */
uint64_t opening_bytes(struct opening *opening, int fd, int64_t offset, uint64_t bytes);
int64_t opening_size(struct opening *opening, int fd);

#endif
