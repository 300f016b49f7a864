/* AASFP's Forward and Backward: reads a file in BLOCK-byte reads, STRIDE bytes apart, from the first block to the last or
 * from the last to the first, and prints a checksum of the bytes it read.
 *
 *   stride FILE forward|backward STRIDE BLOCK [pread|read] [COMPUTE_US]
 *
 * `read` seeks before every read. Every read is followed by COMPUTE_US of computing: a spin on the clock, which takes the
 * same time on every machine. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static void die(const char *what) { perror(what); exit(1); }

static uint64_t now_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

int main(int argc, char **argv)
{
	if (argc < 5) {
		fprintf(stderr, "usage: stride FILE forward|backward STRIDE BLOCK [pread|read] [COMPUTE_US]\n");
		return 2;
	}
	int backward = strcmp(argv[2], "backward") == 0;
	uint64_t stride = strtoull(argv[3], NULL, 10), block = strtoull(argv[4], NULL, 10);
	int seeks = argc > 5 && strcmp(argv[5], "read") == 0;
	uint64_t compute_ns = argc > 6 ? strtoull(argv[6], NULL, 10) * 1000 : 0;
	struct stat st;
	int fd = open(argv[1], O_RDONLY);
	if (fd < 0 || fstat(fd, &st) != 0) die(argv[1]);
	char *buffer = aligned_alloc(4096, (block + 4095) / 4096 * 4096);
	if (!buffer || !stride || block < 8) { fprintf(stderr, "stride: bad sizes\n"); return 2; }

	uint64_t count = ((uint64_t)st.st_size + stride - 1) / stride, sum = 0;
	for (uint64_t i = 0; i < count; i++) {
		off_t at = (off_t)((backward ? count - 1 - i : i) * stride);
		ssize_t got;
		if (seeks) {
			if (lseek(fd, at, SEEK_SET) < 0) die("lseek");
			got = read(fd, buffer, block);
		} else {
			got = pread(fd, buffer, block, at);
		}
		if (got < 0) die("read");
		for (ssize_t b = 0; b + 8 <= got; b += 8) {
			uint64_t word;
			memcpy(&word, buffer + b, 8);
			sum = sum * 31 + word;
		}
		if (compute_ns) {
			uint64_t end = now_ns() + compute_ns;
			while (now_ns() < end) { }
		}
	}
	printf("%llu blocks, checksum %016llx\n", (unsigned long long)count, (unsigned long long)sum);
	return 0;
}
