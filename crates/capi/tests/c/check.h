/* Common parts of the test programs. A program is called with a directory of its own, and exits with 0
 * (success), 1 (failure; the line is on stderr) or 77 (cannot be tested here). */
#ifndef CHECK_H
#define CHECK_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHECK(condition)                                                                   \
	do {                                                                               \
		if (!(condition)) {                                                        \
			fprintf(stderr, "%s:%d: %s (errno %d)\n", __FILE__, __LINE__,      \
				#condition, errno);                                        \
			exit(1);                                                           \
		}                                                                          \
	} while (0)

/* Compares two integers and shows both. */
#define SAME(got, wanted)                                                                  \
	do {                                                                               \
		long long got_ = (long long)(got), wanted_ = (long long)(wanted);          \
		if (got_ != wanted_) {                                                     \
			fprintf(stderr, "%s:%d: %s is %lld, not %lld\n", __FILE__,         \
				__LINE__, #got, got_, wanted_);                            \
			exit(1);                                                           \
		}                                                                          \
	} while (0)

/* The byte at an offset of every file that make_file makes. */
static inline unsigned char byte_at(size_t offset)
{
	return (unsigned char)(offset * 31 + offset / 251);
}

/* Makes a file in the program's directory. Stores its path in `path`. */
static inline void make_path(char path[PATH_MAX], const char *folder, const char *name, size_t size)
{
	size_t i;
	FILE *file;

	snprintf(path, PATH_MAX, "%s/%s", folder, name);
	file = fopen(path, "w");
	CHECK(file != NULL);
	for (i = 0; i < size; i++)
		putc(byte_at(i), file);
	CHECK(fclose(file) == 0);
}

/* Makes a file and opens it for reading. */
static inline int make_file(const char *folder, const char *name, size_t size)
{
	char path[PATH_MAX];
	int fd;

	make_path(path, folder, name, size);
	fd = open(path, O_RDONLY);
	CHECK(fd >= 0);
	return fd;
}

/* Drops a file from memory. True if that worked. */
static inline int evict(const char *path)
{
	unsigned char there[1 << 16];
	int fd = open(path, O_RDONLY), left = 0;
	struct stat facts;
	size_t i, pages;
	void *map;

	CHECK(fd >= 0 && fstat(fd, &facts) == 0);
	CHECK(fsync(fd) == 0);
	posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
	map = mmap(NULL, (size_t)facts.st_size, PROT_READ, MAP_SHARED, fd, 0);
	CHECK(map != MAP_FAILED);
	pages = ((size_t)facts.st_size + 4095) / 4096;
	CHECK(pages <= sizeof(there) && mincore(map, (size_t)facts.st_size, there) == 0);
	for (i = 0; i < pages; i++)
		left += there[i] & 1;
	CHECK(munmap(map, (size_t)facts.st_size) == 0);
	CHECK(close(fd) == 0);
	return left == 0;
}

/* Reads one byte at `offset`, and checks it. */
static inline void read_byte(int fd, off_t offset)
{
	unsigned char byte = 0;

	SAME(pread(fd, &byte, 1, offset), 1);
	SAME(byte, byte_at((size_t)offset));
}

#endif
