// Branches of ?: with kept parts.
//: KEEPS if (!(n % 2)) {
//: DROPS else {
//: DATA data 65536
//: RUN
//: COUNTS
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

static int fd;

static int look(int at)
{
	unsigned char c;
	pread(fd, &c, 1, at * 100);
	return c;
}

int main(void)
{
	int sum = 0;
	fd = open("data", O_RDONLY);
	for (int n = 0; n < 20; n++) {
		sum += n % 3 ? look(n) : 1;
		sum += n % 2 ? 1 : look(n);
	}
	printf("%d\n", sum);
	usleep(200000);
	return 0;
}
