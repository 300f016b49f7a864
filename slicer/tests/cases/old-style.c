// Definitions in the old style, and declarations that differ from their definitions.
//: KEEPS pf_at()
//: DATA data 4096
//: RUN
//: COUNTS
//: CFLAGS -std=gnu89
//: UNIT main.c
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

long at();
int show(int, char **);

static int get(fd, where)
	int fd;
	short where;
{
	unsigned char c = 0;
	pread(fd, &c, 1, at(where, 3));
	return c;
}

int main(argc, argv)
	int argc;
	char **argv;
{
	int fd = open("data", O_RDONLY), i;
	for (i = 0; i < 20; i++)
		printf("%d\n", get(fd, i));
	show(fd, argv);
	usleep(200000);
	return 0;
}
//: UNIT at.c
#include <unistd.h>
int last = 7;
long at(short where, int scale) { last++; return where * scale * 10; }
int show(void) { char c; pread(3, &c, 1, last); return 0; }
