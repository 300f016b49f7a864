// Functions around open() and fopen(): their files are only read if all calls of them say so. A function
// that reports leaves errno unchanged, and is therefore not related if a read is tested for EINTR.
//: STATUS report whole
//: DROPS pf_report
//: DROPS foreread_synchronize
//: KEEPS prefetch_pread(fd, sizeof block
//: KEEPS prefetch_fread(file, 1, sizeof block)
//: DATA data 200000
//: DATA other 200000
//: RUN data other
//: RUN data missing
//: COUNTS
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static unsigned failures;
static char *last;

static void report(const char *path)
{
	int saved = errno;
	free(last);
	last = strdup(path);
	failures++;
	fprintf(stderr, "cannot open %s\n", path);
	errno = saved;
}

static int opens(const char *path, int flags)
{
	return open(path, flags | O_NOCTTY);
}

static FILE *streams(const char *path, const char *mode)
{
	FILE *file = fopen(path, mode);
	if (!file)
		report(path);
	return file;
}

static int quietly(const char *path, int close_on_exec)
{
	int flags = close_on_exec ? O_RDONLY | O_CLOEXEC : O_RDONLY;
	return opens(path, flags);
}

int main(int argc, char **argv)
{
	unsigned char block[50] = {0};
	unsigned sum = 0;
	int fd = quietly(argv[1], argc > 2);
	for (int n = 20; n-- > 0;) {
		while (pread(fd, block, sizeof block, n * 9000L) < 0 && errno == EINTR)
			;
		sum = sum * 3 + block[0];
	}
	FILE *file = streams(argv[2], argc > 7 ? "rb" : "r");
	for (int n = 20; file && n-- > 0;) {
		fseek(file, n * 9000L, SEEK_SET);
		while (fread(block, 1, sizeof block, file) == 0 && errno == EINTR)
			;
		sum = sum * 3 + block[0];
	}
	printf("%u %u %s\n", sum, failures, last ? last : "");
	usleep(200000);
	return 0;
}
