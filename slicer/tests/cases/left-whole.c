// A function that is left whole runs unchanged if it is needed, and no other function is left whole with it.
//: STATUS scramble refused
//: WHY scramble assembler
//: STATUS main sliced
//: KEEPS prefetch_pread(fd, 1, scramble(i))
//: DATA data 4096
//: RUN
//: COUNTS
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

static long scramble(long n)
{
	__asm__("" : "+r"(n));
	return n * 13 % 4000;
}

int main(void)
{
	unsigned char c = 0;
	int fd = open("data", O_RDONLY);
	for (int i = 0; i < 50; i++) {
		pread(fd, &c, 1, scramble(i));
		printf("%d\n", c);
	}
	usleep(200000);
	return 0;
}
