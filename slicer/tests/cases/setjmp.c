// setjmp: the prefetch thread takes the path without a longjmp.
//: STATUS main sliced
//: KEEPS prefetch_pread(fd, 1, i * 50)
//: DROPS longjmp
//: ASSUMED _setjmp() succeeds
//: DATA data 4096
//: RUN
//: COUNTS
#include <fcntl.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static jmp_buf out;

static void check(int c)
{
	if (c > 300)
		longjmp(out, 1);
}

int main(void)
{
	unsigned char c;
	int fd = open("data", O_RDONLY);
	if (setjmp(out)) {
		puts("thrown");
		return 0;
	}
	for (int i = 0; i < 30; i++) {
		pread(fd, &c, 1, i * 50);
		check(c);
	}
	usleep(200000);
	return 0;
}
