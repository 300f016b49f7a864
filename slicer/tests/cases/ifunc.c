// Both threads run a function that may be called by a name resolved at load time unchanged, and its
// text counts its reads in both.
//: STATUS fast whole
//: WHY fast counted: it may be called by a name that is resolved when the program is loaded
//: STATUS slow whole
//: STATUS main sliced
//: DATA data 400000
//: RUN
//: COUNTS
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

static int fast(int fd, int i)
{
	unsigned char c = 0;
	pread(fd, &c, 1, i * 4096L);
	return c;
}

static int slow(int fd, int i)
{
	unsigned char c = 0;
	lseek(fd, i * 4096L, SEEK_SET);
	read(fd, &c, 1);
	return c;
}

static int (*resolve(void))(int, int)
{
	return sizeof(long) == 8 ? fast : slow;
}

int get(int fd, int i) __attribute__((ifunc("resolve")));

int main(void)
{
	int fd = open("data", O_RDONLY), sum = 0;
	for (int i = 90; i > 0; i--) {
		unsigned char c = 0;
		sum += get(fd, i) + fast(fd, i / 2) + slow(fd, i / 3);
		pread(fd, &c, 1, i * 2048L);
		sum += c;
	}
	printf("%d\n", sum);
	usleep(200000);
	return 0;
}
