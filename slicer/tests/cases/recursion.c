// Recursion, over a tree whose nodes are in the file, and mutual recursion.
//: STATUS walk sliced
//: STATUS left sliced
//: DROPS printf
//: DATA data 65536
//: RUN
//: COUNTS
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

static unsigned long sum;
static void walk(int fd, unsigned at, int depth);

static void left(int fd, unsigned at, int depth)
{
	if (depth > 0)
		walk(fd, at / 2 + 1, depth);
}

static void walk(int fd, unsigned at, int depth)
{
	unsigned short node[4];
	if (depth == 0)
		return;
	if (pread(fd, node, sizeof node, at) != sizeof node)
		return;
	sum = sum * 5 + node[3];
	left(fd, node[0], depth - 1);
	walk(fd, node[1], depth - 1);
}

int main(void)
{
	int fd = open("data", O_RDONLY);
	walk(fd, 3, 7);
	printf("%lu\n", sum);
	usleep(200000);
	return 0;
}
