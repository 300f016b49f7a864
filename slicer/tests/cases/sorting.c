// qsort with a comparison of the program's own, and bsearch: the library calls it unchanged.
//: KEEPS qsort(
//: DATA data 65536
//: RUN
//: COUNTS
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct item { unsigned key; unsigned short where; };
static int order = -1;

static int compare(const void *a, const void *b)
{
	const struct item *x = a, *y = b;
	return order * ((x->where > y->where) - (x->where < y->where));
}

int main(void)
{
	struct item items[64];
	int fd = open("data", O_RDONLY);
	unsigned char c = 0;
	read(fd, items, sizeof items);
	order = 1;
	qsort(items, 64, sizeof items[0], compare);
	for (int i = 0; i < 64; i++) {
		pread(fd, &c, 1, items[i].where);
		printf("%d ", c);
	}
	usleep(200000);
	return 0;
}
