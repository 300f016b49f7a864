// Checks of data that was read: a branch that only reports and leaves is assumed not to be taken if
// deciding it needs the data; a branch that can be decided without is kept.
//: KEEPS prefetch_pread(fd, sizeof block, i * 100)
//: KEEPS if (i > 60)
//: DROPS sum
//: ASSUMED this failure does not happen
//: DATA data 4096
//: RUN
//: COUNTS
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

static int load(int fd, int i)
{
	unsigned char block[64];
	unsigned sum = 0;
	if (i > 60) {
		fprintf(stderr, "no such block\n");
		return -1;
	}
	if (pread(fd, block, sizeof block, i * 100) < 0)
		return -1;
	for (unsigned k = 0; k < sizeof block; k++)
		sum += block[k];
	if (sum == 3) {
		fprintf(stderr, "block %d is damaged\n", i);
		return -1;
	}
	return sum;
}

int main(void)
{
	unsigned total = 0;
	int fd = open("data", O_RDONLY);
	for (int i = 0; i < 40; i++) {
		int sum = load(fd, i);
		if (sum < 0) {
			fprintf(stderr, "stopped\n");
			break;
		}
		total += sum;
	}
	printf("%u\n", total);
	usleep(200000);
	return 0;
}
