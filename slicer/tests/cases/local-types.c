// Structures declared inside functions. Without a name: in sizeof, as in gnulib's assertions, of
// variables, of members; with a name that their members use.
//: STATUS main sliced
//: DATA data 65536
//: KEEPS ((!!4UL) ? (2) : 0) + (int)1UL - 1
//: RUN
//: COUNTS
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define VERIFY(C) (!!sizeof(struct { unsigned error : (C) ? 1 : -1; }))
#define STEP(N) (VERIFY((N) > 0) ? (N) : 0)

static struct { int first, step; enum { FORWARD, BACKWARD } way; } walk = {2, 3, BACKWARD};
static union { long number; unsigned char bytes[sizeof(struct { long first; char rest[8]; })]; } block;

int main(void)
{
	int fd = open("data", O_RDONLY);
	struct { struct { int at; } inner[2]; } *places = malloc(sizeof *places);
	struct page {
		long at;
		struct page *next;
	};
	typedef struct page PAGE;
	PAGE last = {60000, NULL}, *pages = &last;
	places->inner[1].at = walk.way == BACKWARD ? 15 : 0;
	if (fd < 0 || !VERIFY(sizeof walk >= 12))
		return 1;
	for (int i = 0; i < 5; i++) {
		pread(fd, block.bytes, sizeof block, places->inner[1].at * 4096L);
		places->inner[1].at -= STEP(2) + (int)sizeof(union { char c[1]; }[1]) - 1 + !VERIFY(1);
	}
	for (; pages; pages = pages->next)
		pread(fd, block.bytes, sizeof block, pages->at);
	printf("%d %ld\n", block.bytes[0], block.number & 1);
	free(places);
	usleep(200000);
	return 0;
}
