// main is in an included file: nothing can be put there.
//: STATUS main refused
//: WHY main it is defined in a header
//: UNCHANGED
#include <fcntl.h>
#include "main.inc"
//: UNIT main.inc
#include <stdio.h>
#include <unistd.h>

int main(void)
{
	unsigned char c;
	int fd = open("data", O_RDONLY);
	for (int i = 0; i < 20; i++)
		pread(fd, &c, 1, i * 1000);
	return c;
}
