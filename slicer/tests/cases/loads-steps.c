// Loops over an index: backward, with a step, up to a bound that is not constant, over a pointer; columns, a page apart.
//: KEEPS if ((n - 1) >= 0) { prefetch_loads(&row[((n - 1))], &row[((n - 1) - 3)], sizeof(int), ((n - 1) - 0 + 3) / 3);
//: KEEPS if ((size_t)0 < width) { prefetch_loads(&row[((size_t)0)], &row[((size_t)0 + 1)], sizeof(int), width - (size_t)0); }
//: KEEPS prefetch_loads(&*(row), &*(row + 1), sizeof(int), (row + n) - row);
//: KEEPS prefetch_loads(&map[(0) * 1024 + c], &map[(0 + 1) * 1024 + c], sizeof(int), 256);
//: KEEPS prefetch_load(&row[k * k % 1000], sizeof(row[k * k % 1000]));
//: DROPS sum
//: DATA data 1048576
//: UNSEEN a mapped file is looked at by loads
//: RUN 700
//: RUN 0
//: COUNTS
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

static unsigned sum;

static void found(unsigned value)
{
	for (int i = 0; i < 100; i++)
		sum = sum * 5 + (value ^ sum >> 3);
}

int main(int argc, char **argv)
{
	int n = argc > 1 ? atoi(argv[1]) : 0;
	size_t width = (size_t)n / 2;
	int fd = open("data", O_RDONLY);
	const int *map = mmap(0, 1048576, PROT_READ, MAP_PRIVATE, fd, 0);
	if (map == MAP_FAILED)
		return 1;
	for (int r = 0; r < 256; r++) {
		const int *row = map + r * 37 % 256 * 1024;
		for (int k = n - 1; k >= 0; k -= 3)
			sum = sum * 3 + row[k];
		for (size_t k = 0; k < width; k++)
			sum = sum * 5 + row[k];
		for (const int *p = row; p < row + n; p++)
			sum = sum * 7 + *p;
		for (int k = 0; k < 20; k++)
			found(row[k * k % 1000]);
	}
	for (int c = 0; c < 1024; c++) {
		for (int r = 0; r < 256; r++)
			sum = sum * 3 + map[r * 1024 + c];
	}
	printf("%u\n", sum);
	usleep(200000);
	return 0;
}
