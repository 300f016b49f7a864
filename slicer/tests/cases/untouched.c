// Memory that nothing kept uses is allocated and released by the runtime, also through functions that allocate;
// memory that is used, may be moved, or is released by a function that is left whole belongs to the C library.
//: KEEPS block = prefetch_malloc(size)
//: KEEPS rest = prefetch_calloc(2, size)
//: KEEPS own = malloc(bytes)
//: KEEPS given = malloc(4)
//: KEEPS moved = malloc(16)
//: KEEPS dropped = malloc(32)
//: KEEPS prefetch_free(blocks[n])
//: DROPS = free(
//: STATUS drop refused
//: DATA data 200000
//: RUN
//: COUNTS
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int fd;
static unsigned sum;
static unsigned char *blocks[40];

static void *get(size_t bytes)
{
	void *own = malloc(bytes);
	if (own == NULL)
		exit(1);
	return own;
}

static unsigned char *load(int n, size_t size)
{
	unsigned char *block = malloc(size), *rest = calloc(2, size);
	if (block == NULL || rest == NULL)
		exit(1);
	pread(fd, block, size, n * 4500L);
	pread(fd, rest, size, n * 4500L + 2000);
	sum = sum * 31 + block[7] + rest[9];
	return n % 2 ? block : rest;
}

/* Left whole, and releases memory. */
static void drop(void *dropped)
{
	void *places[] = { &&here, &&there };
	goto *places[dropped != NULL];
there:
	free(dropped);
here:
	return;
}

int main(void)
{
	fd = open("data", O_RDONLY);
	/* Some of the memory from one function is used. */
	unsigned char *index = get(40), *unread = get(64);
	unsigned char *given = malloc(4), *moved = malloc(16), *dropped = malloc(32);
	pread(fd, index, 40, 100);
	pread(fd, given, 4, 1000);
	pread(fd, moved, 16, 3000);
	pread(fd, dropped, 32, 5000);
	sum = unread[pread(fd, unread, 64, given[1]) - 1] + moved[3] + dropped[4];
	moved = realloc(moved, 64);
	for (int again = 0; again < 2; again++)
		for (int n = 0; n < 40; n++) {
			if (blocks[n] == NULL)
				blocks[n] = load(index[n] % 40, 4096);
			if (n % 3 == again) {
				free(blocks[n]);
				blocks[n] = NULL;
			}
		}
	if (moved != NULL && dropped != NULL)
		pread(fd, index, 8, 7000);
	drop(dropped);
	printf("%u %u\n", sum, index[0]);
	usleep(200000);
	return 0;
}
