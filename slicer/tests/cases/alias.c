// A function has several names, for its own unit and for others.
//: KEEPS pf_look(i)
//: KEEPS pf_look(i + 1)
//: DATA data 65536
//: RUN
//: COUNTS
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

static int fd;
int further(void);

int look(int at)
{
	unsigned char c;
	pread(fd, &c, 1, at * 100);
	return c;
}

int glance(int at) __attribute__((alias("look")));

int main(void)
{
	int sum = 0;
	fd = open("data", O_RDONLY);
	for (int i = 0; i < 20; i++)
		sum += glance(i);
	printf("%d\n", sum + further());
	usleep(200000);
	return 0;
}
//: UNIT further.c
int glance(int at);

int further(void)
{
	int sum = 0;
	for (int i = 0; i < 20; i++)
		sum += glance(i + 1);
	return sum;
}
