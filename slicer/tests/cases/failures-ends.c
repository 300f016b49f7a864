// A program that ends with status 0 has not failed, by whichever function it ends: its later reads are not made.
//: KEEPS if (block[0] == 77)
//: KEEPS if (other[0] == 78)
//: DROPS if (third[0] == 79)
//: ASSUMED this failure does not happen
//: DATA data 4096
//: RUN 0
//: RUN 1
//: RUN 2
//: COUNTS
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static int at;

static void say(void)
{
	printf("%d\n", at);
	fflush(stdout);
	usleep(200000);
}

static void end_at_once(void)
{
	say();
	_Exit(0);
}

static void end_quickly(void)
{
	say();
	quick_exit(0);
}

static int once(int fd)
{
	unsigned char block[8];
	for (int i = 0; i < 400; i++) {
		pread(fd, block, sizeof block, i * 8);
		at += block[1];
		if (block[0] == 77) {
			end_at_once();
			return 1;
		}
	}
	return 0;
}

static int quickly(int fd)
{
	unsigned char other[8];
	for (int i = 0; i < 400; i++) {
		pread(fd, other, sizeof other, i * 8);
		at += other[1];
		if (other[0] == 78) {
			end_quickly();
			return 1;
		}
	}
	return 0;
}

static int failing(int fd)
{
	unsigned char third[8];
	for (int i = 0; i < 400; i++) {
		pread(fd, third, sizeof third, i * 8);
		at += third[1];
		if (third[0] == 79 && third[1] == 3)
			_Exit(1);
	}
	return 0;
}

int main(int argc, char **argv)
{
	int fd = open("data", O_RDONLY), how = argc > 1 ? atoi(argv[1]) : 0;
	if (how == 0)
		once(fd);
	if (how == 1)
		quickly(fd);
	failing(fd);
	say();
	return 0;
}
