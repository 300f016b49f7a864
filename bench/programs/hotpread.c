/* The cost of one hot read: COUNT preads of the first 4 KiB of a file, which are in
 * the page cache after the first; prints the mean time of one, in ns. Afterwards, not
 * timed, it reads every fourth page from the end: something worth fetching, so that
 * a prefetcher at work stays at work while the hot reads are timed.
 *
 *   hotpread FILE COUNT */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static void die(const char *what) { perror(what); exit(1); }

static double now_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

int main(int argc, char **argv)
{
	if (argc != 3) {
		fprintf(stderr, "usage: hotpread FILE COUNT\n");
		return 2;
	}
	uint64_t count = strtoull(argv[2], NULL, 10);
	static char buffer[4096] __attribute__((aligned(4096)));
	int fd = open(argv[1], O_RDONLY);
	if (fd < 0) die(argv[1]);
	if (pread(fd, buffer, 4096, 0) != 4096) die("pread");
	double began = now_ns();
	for (uint64_t i = 0; i < count; i++)
		if (pread(fd, buffer, 4096, 0) != 4096) die("pread");
	double each = (now_ns() - began) / (double)count;
	off_t size = lseek(fd, 0, SEEK_END);
	for (off_t at = size - 4096; at > 0; at -= 4 * 4096)
		if (pread(fd, buffer, 4096, at) != 4096) die("pread");
	printf("%.2f\n", each);
	return 0;
}
