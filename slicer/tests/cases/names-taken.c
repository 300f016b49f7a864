// Functions of the program have the names that prefetch functions would have, with the longer prefixes as well.
//: DATA data 4096
//: RUN
//: COUNTS
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

static int fd;
static unsigned char c;

void first(int i)
{
	pread(fd, &c, 1, i * 3);
}

void pf__first(int i)
{
	pread(fd, &c, 1, i * 5);
}

static void second(int i)
{
	pread(fd, &c, 1, i * 7);
}

static void pf_second(int i)
{
	pread(fd, &c, 1, i * 11);
}

int main(void)
{
	int sum = 0;
	fd = open("data", O_RDONLY);
	for (int i = 0; i < 50; i++) {
		first(i);
		pf__first(i);
		second(i);
		pf_second(i);
		sum = sum * 3 + c;
	}
	printf("%d\n", sum);
	usleep(200000);
	return 0;
}
