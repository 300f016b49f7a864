// main is in an included file.
//: STATUS main sliced
//: DATA data 30000
//: RUN
//: COUNTS
#include <fcntl.h>
#include "main.inc"
//: UNIT main.inc
#include <stdio.h>
#include <unistd.h>

int main(void)
{
	unsigned char c = 0;
	int fd = open("data", O_RDONLY);
	for (int i = 0; i < 20; i++)
		pread(fd, &c, 1, i * 1000);
	usleep(200000);
	return c;
}
