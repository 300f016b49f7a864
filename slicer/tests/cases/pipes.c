// A function that is left whole asks whether a descriptor can be moved: in the prefetch thread a pipe, which is not made
// there, would answer otherwise. So its reads are not counted.
//: STATUS taken refused
//: DATA data 4096
//: RUN
//: COUNTS
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

static int taken(int fd, int in, int i)
{
	unsigned char c = 0;
	__asm__("" : "+r"(i));
	if (lseek(in, 0, SEEK_CUR) < 0)
		i *= 2;
	pread(fd, &c, 1, i * 13);
	return c;
}

int main(void)
{
	unsigned char c = 0;
	int ends[2], sum = 0, fd = open("data", O_RDONLY);
	if (pipe(ends) < 0)
		return 1;
	for (int i = 0; i < 50; i++) {
		pread(fd, &c, 1, i * 7);
		sum = sum * 3 + c + taken(fd, ends[0], i);
	}
	printf("%d\n", sum);
	usleep(200000);
	return 0;
}
