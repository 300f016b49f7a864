/* registry.h - the files used so far: a device and an inode each, with a number for the lists. */
#ifndef REGISTRY_H
#define REGISTRY_H

#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

struct file;

/* The file with this identity; NULL without memory. For one thread at a time. */
struct file *file_of(const struct stat *facts);
/* A file's number, from 0. */
size_t file_number(const struct file *file);
/* A file's device and inode. */
void file_identity(const struct file *file, uint64_t *dev, uint64_t *ino);
/* Number of files used so far. */
size_t files_known(void);

#endif
