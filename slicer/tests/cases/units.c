// Across translation units: a global variable, a function and a file-local name that both units have.
//: STATUS next_offset pure
//: STATUS local pure
//: KEEPS lseek(fd, next_offset(), SEEK_SET)
//: DATA data 8192
//: RUN
//: COUNTS
//: UNIT main.c
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>
#include "state.h"

static int local(int n) { return n + 1; }

int main(void)
{
	unsigned char c = 0;
	unsigned sum = 0;
	int fd = open("data", O_RDONLY);
	position = local(40);
	for (int i = 0; i < 50; i++) {
		lseek(fd, next_offset(), SEEK_SET);
		read(fd, &c, 1);
		sum = sum * 3 + c;
	}
	printf("%u\n", sum);
	usleep(200000);
	return 0;
}
//: UNIT state.h
extern long position;
long next_offset(void);
//: UNIT state.c
#include "state.h"

long position;

static long local(long n) { return n * 7 + 3; }

long next_offset(void)
{
	position = local(position) % 8000;
	return position;
}
