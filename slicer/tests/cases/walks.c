// A library function with a callback that reads files: the prefetch version is passed to it.
//: KEEPS nftw(".", pf_visit, 8, FTW_PHYS)
//: DATA one 4096
//: DATA two 4096
//: RUN
//: COUNTS
#define _GNU_SOURCE
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <unistd.h>

static unsigned total;

static int visit(const char *path, const struct stat *status, int type, struct FTW *where)
{
	unsigned char c = 0;
	if (type != FTW_F)
		return 0;
	int fd = open(path, O_RDONLY);
	for (int i = 0; i < 10; i++) {
		pread(fd, &c, 1, i * 300);
		total += c;
	}
	close(fd);
	return 0;
}

int main(void)
{
	nftw(".", visit, 8, FTW_PHYS);
	printf("%u\n", total);
	usleep(200000);
	return 0;
}
