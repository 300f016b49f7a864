// A header that is included twice, and one that tests for headers, cannot replace their #include.
//: STATUS main sliced
//: STATUS twice sliced
//: KEEPS FOREREAD_UNCOUNTED(fetch_pread(fd, &c, 1, at * 1000))
//: KEEPS FOREREAD_UNCOUNTED(fetch_pread(fd, &c, 1, at * 3000))
//: DATA data 200000
//: RUN
//: COUNTS
#include <fcntl.h>
#include <stdio.h>
#define NAME once
#include "twice.h"
#undef NAME
#define NAME twice
#include "twice.h"
#include "asks.h"

int main(void)
{
	int fd = open("data", O_RDONLY), sum = 0;
	for (int i = 0; i < 20; i++) {
		unsigned char c = 0;
		sum = sum * 3 + once(fd, i) + twice(fd, i) + asks(fd, i);
		pread(fd, &c, 1, sum & 0xffff);
		sum += c;
	}
	printf("%d\n", sum);
	usleep(200000);
	return 0;
}
//: UNIT twice.h
#include <unistd.h>

static int NAME(int fd, int at)
{
	unsigned char c;
	pread(fd, &c, 1, at * 1000);
	return c;
}
//: UNIT asks.h
#if __has_include("twice.h")
static int asks(int fd, int at)
{
	unsigned char c;
	pread(fd, &c, 1, at * 3000);
	return c;
}
#endif
