/* Random reads: COUNT preads of 4 KiB at page-aligned pseudo-random offsets of a file, each followed by COMPUTE_US of
 * computing (a spin on the clock); prints a checksum of the bytes it read.
 *
 *   randread FILE COUNT SEED COMPUTE_US */
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

/* SplitMix64. */
static uint64_t next(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15u;
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

int main(int argc, char **argv)
{
	if (argc != 5) {
		fprintf(stderr, "usage: randread FILE COUNT SEED COMPUTE_US\n");
		return 2;
	}
	uint64_t count = strtoull(argv[2], NULL, 10), state = strtoull(argv[3], NULL, 10);
	uint64_t compute_ns = strtoull(argv[4], NULL, 10) * 1000;
	struct stat st;
	int fd = open(argv[1], O_RDONLY);
	if (fd < 0 || fstat(fd, &st) != 0) die(argv[1]);
	uint64_t pages = (uint64_t)st.st_size / 4096, sum = 0;
	if (!pages) { fprintf(stderr, "randread: %s is shorter than a page\n", argv[1]); return 2; }
	static char buffer[4096] __attribute__((aligned(4096)));
	for (uint64_t i = 0; i < count; i++) {
		uint64_t word;
		if (pread(fd, buffer, 4096, (off_t)(next(&state) % pages * 4096)) != 4096) die("pread");
		memcpy(&word, buffer, 8);
		sum = sum * 31 + word;
		memcpy(&word, buffer + 4088, 8);
		sum = sum * 31 + word;
		if (compute_ns) {
			uint64_t end = now_ns() + compute_ns;
			while (now_ns() < end) { }
		}
	}
	printf("%llu reads, checksum %016llx\n", (unsigned long long)count, (unsigned long long)sum);
	return 0;
}
