// Bricks of a mapped volume, sums by rows: a row is announced at once, a layer is counted. Bounds
// in a brick itself are announced, not waited for; loads that they decide are not announced.
//: KEEPS prefetch_call();
//: KEEPS prefetch_loads(&(*brick)[z][y][(0)], &(*brick)[z][y][(0 + 1)], sizeof(unsigned char), 16);
//: KEEPS prefetch_load(&head->used, sizeof(head->used));
//: DROPS head->extra
//: PROGRAM for (int z = 0; z < 16; z++) { foreread_call();
//: LOOKS depends on what is looked at elsewhere
//: LOOKS too little is done from one time to the next
//: DATA data 1048576
//: UNSEEN a mapped file is looked at by loads
//: RUN
//: COUNTS
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

typedef unsigned char bricks[16][16][16];

struct head {
	unsigned char used;
	unsigned char extra[500];
};

static unsigned brick_sum(const bricks *brick)
{
	unsigned sum = 0;
	for (int z = 0; z < 16; z++) {
		for (int y = 0; y < 16; y++)
			for (int x = 0; x < 16; x++)
				sum = sum * 3 + (*brick)[z][y][x];
	}
	return sum;
}

int main(void)
{
	unsigned sum = 0;
	int fd = open("data", O_RDONLY);
	const char *map = mmap(0, 1048576, PROT_READ, MAP_PRIVATE, fd, 0);
	if (map == MAP_FAILED)
		return 1;
	for (int b = 0; b < 128; b++) {
		sum += brick_sum((const bricks *)map + b * 37 % 128);
	}
	for (int b = 0; b < 100; b++) {
		const struct head *head = (const struct head *)(map + 524288 + b * 37 % 100 * 4096);
		for (int k = 0; k < head->used; k++)
			sum += head->extra[k];
	}
	for (int b = 0; b < 100; b++)
		sum += map[b * 77 % 100];
	printf("%u\n", sum);
	usleep(200000);
	return 0;
}
