// Static locals, variable-length arrays, compound literals, unions, conditional and comma operators.
//: KEEPS static long last = 7;
//: DATA data 65536
//: RUN
//: COUNTS
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

union word { unsigned number; unsigned char byte[4]; };
struct range { long first; int bytes; };

static long next(void)
{
	static long last = 7;
	last = (last * 5 + 1) % 60000;
	return last;
}

static long middle(struct range r) { return r.first + r.bytes / 2; }

int main(int argc, char **argv)
{
	int n = argc + 9, i, j;
	long table[n];
	unsigned char c = 0;
	union word w;
	int fd = open("data", O_RDONLY);
	for (i = 0, j = n; i < n; i++, j--)
		table[i] = next() + j;
	for (i = 0; i < n; i++) {
		w.number = table[i];
		pread(fd, &c, 1, i & 1 ? w.byte[0] * 100 : (w.byte[1] += 1, w.number));
		printf("%d\n", c);
		pread(fd, &c, 1, middle((struct range){ .first = table[i], .bytes = i * 4 }));
		printf("%d\n", c);
	}
	long *heap = malloc(n * sizeof *heap);
	memcpy(heap, table, n * sizeof *heap);
	qsort(heap, 0, sizeof *heap, 0);
	do {
		pread(fd, &c, 1, heap[--i]);
		printf("%d\n", c);
	} while (i > 0);
	free(heap);
	usleep(200000);
	return 0;
}
