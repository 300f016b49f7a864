// An array that is only read to find the place in another.
//: KEEPS order[i] = (i * 7) % 100
//: KEEPS prefetch_pread(fd, 1, offsets[order[i]])
//: DATA data 70000
//: RUN
//: COUNTS
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

static int order[100];
static off_t offsets[100];

int main(void)
{
	unsigned char c = 0;
	unsigned sum = 0;
	int fd = open("data", O_RDONLY);
	for (int i = 0; i < 100; i++) {
		order[i] = (i * 7) % 100;
		offsets[i] = (off_t)i * 601;
	}
	for (int i = 0; i < 100; i++) {
		if (pread(fd, &c, 1, offsets[order[i]]) == 1)
			sum = sum * 3 + c;
	}
	printf("%u\n", sum);
	usleep(200000);
	return 0;
}
