// Numbers assigned by dup2() and dup3(): constants, variables with a number, duplicates of such descriptors.
//: STATUS main sliced
//: STATUS use sliced
//: KEEPS pf_use(0)
//: KEEPS int again = prefetch_dup(0);
//: KEEPS prefetch_dup2(fd, HERE)
//: KEEPS prefetch_dup3(fd, held, O_CLOEXEC)
//: FILE data data
//: DATA data 200000
//: RUN
//: COUNTS
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

enum { HERE = 41 };

static unsigned use(int in)
{
	unsigned sum = 0;
	for (int n = 0; n < 20; n++) {
		unsigned char c = 0;
		lseek(in, (19 - n) * 9000L, SEEK_SET);
		if (read(in, &c, 1) < 1)
			break;
		sum = sum * 3 + c;
	}
	return sum;
}

int main(void)
{
	int fd = open("data", O_RDONLY), held = 43;
	unsigned sum;
	unsigned char c[3] = {0};
	/* No descriptor, in all variants. */
	unsigned long most = 18446744073709551615UL, nearly = 18446744073709551614UL;
	if (dup2(fd, 0) < 0)
		return 1;
	sum = use(0);
	int again = dup(0);
	if (again < 0)
		return 2;
	pread(again, c, 1, 30000);
	if (dup2(fd, HERE) < 0)
		return 3;
	pread(HERE, c + 1, 1, 60000);
	if (dup3(fd, held, O_CLOEXEC) < 0)
		return 4;
	pread(held, c + 2, 1, 90000);
	printf("%u %d %d %d %lu\n", sum, c[0], c[1], c[2], most - nearly);
	usleep(200000);
	return 0;
}
