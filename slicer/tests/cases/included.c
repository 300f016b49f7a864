// What an included file reads is counted by nobody.
//: STATUS main whole
//: STATUS look whole
//: WHY look what it reads cannot be counted in a header
//: UNCHANGED
#include <fcntl.h>
#include <stdio.h>
#include "look.inc"

int main(void)
{
	int fd = open("data", O_RDONLY);
	for (int i = 0; i < 20; i++)
		printf("%d\n", look(fd, i));
	return 0;
}
//: UNIT look.inc
#include <unistd.h>

static int look(int fd, int at)
{
	unsigned char c;
	pread(fd, &c, 1, at * 1000);
	return c;
}
