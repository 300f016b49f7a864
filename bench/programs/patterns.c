/* Reads a file by a named pattern with ordinary calls, and prints a checksum of the bytes it read.
 *
 *   patterns PATTERN [-b BLOCK] [-o START] [-s STRIDE] [-n COUNT] [-c CURSORS] [-p PLANE] [-r SEED] [-l] FILE
 *
 *   strided   COUNT blocks, STRIDE bytes from the start of one to the start of the next; a negative STRIDE goes backward
 *   nested    COUNT pairs of adjacent blocks, the next pair STRIDE bytes after the start of the second block
 *   columns   CURSORS columns of a matrix of COUNT rows of STRIDE bytes, one column after the other; the columns are
 *             64 KiB or the CURSORS-th part of a row apart, whichever is less; BLOCK is an element
 *   tile      COUNT planes of COUNT rows of a volume, BLOCK bytes of each row; rows are STRIDE bytes apart,
 *             planes PLANE bytes
 *   lu        COUNT steps of an out-of-core LU decomposition, as in table 1 of the signature paper
 *   cyclic    CURSORS cursors in turn, each in its own part of the file, with COUNT blocks STRIDE bytes apart
 *   mixed     as cyclic, with the next cursor chosen at random
 *   run-gap   COUNT runs of CURSORS adjacent blocks, the next run STRIDE bytes after the end of the one before
 *   random    COUNT blocks at random places of the file
 *   solver    creates FILE with COUNT blocks, and reads them from the last to the first
 *
 * Without -n, strided goes to the end of the file, or backward to its beginning. START is the pattern's first byte
 * (default 0, or the last block if STRIDE is negative); random and solver ignore it. -l reads with lseek and read in
 * place of pread. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MOST_CURSORS = 64, SLAB = 524544, COLUMN = 518272, PIVOT = 522368, SHORTER = 4096 };

static int fd, seeks;
static unsigned char *buffer;
static uint64_t sum, reads;

static void die(const char *what) { perror(what); exit(1); }

static void usage(void)
{
	fprintf(stderr, "usage: patterns strided|nested|columns|tile|lu|cyclic|mixed|run-gap|random|solver\n"
			"                [-b BLOCK] [-o START] [-s STRIDE] [-n COUNT] [-c CURSORS] [-p PLANE]\n"
			"                [-r SEED] [-l] FILE\n");
	exit(2);
}

/* SplitMix64. */
static uint64_t next(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15u;
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

static void get(int64_t at, int64_t bytes)
{
	ssize_t got;
	if (seeks) {
		if (lseek(fd, at, SEEK_SET) < 0) die("lseek");
		got = read(fd, buffer, bytes);
	} else {
		got = pread(fd, buffer, bytes, at);
	}
	if (got < 0) die("read");
	for (ssize_t b = 0; b + 8 <= got; b += 8) {
		uint64_t word;
		memcpy(&word, buffer + b, 8);
		sum = sum * 31 + word;
	}
	reads++;
}

/* Each of the COUNT steps reads a new slab, then a part of each slab before it (a shorter part of each later one), then the first slab. */
static void lu(int64_t start, int64_t count)
{
	for (int64_t step = 0; step < count; step++) {
		get(start + (step + 2) * SLAB, SLAB);
		for (int64_t before = 0; before <= step && COLUMN > SHORTER * before; before++)
			get(start + (before + 1) * SLAB, COLUMN - SHORTER * before);
		get(start, PIVOT);
	}
}

static void cursors(int64_t size, int64_t block, int64_t start, int64_t stride, int64_t count, int64_t many,
		    uint64_t *by_chance)
{
	int64_t done[MOST_CURSORS] = { 0 }, part = (size - start) / many;
	for (int64_t left = many * count, turn = 0; left; turn++) {
		int64_t at = (by_chance ? (int64_t)(next(by_chance) % (uint64_t)many) : turn) % many;
		if (done[at] == count)
			continue;
		get(start + at * part + done[at]++ * stride, block);
		left--;
	}
}

static void write_blocks(int64_t block, int64_t count, uint64_t seed)
{
	for (int64_t i = 0; i < count; i++) {
		for (int64_t b = 0; b + 8 <= block; b += 8) {
			uint64_t word = next(&seed);
			memcpy(buffer + b, &word, 8);
		}
		if (pwrite(fd, buffer, block, i * block) != block) die("pwrite");
	}
	if (fdatasync(fd) != 0) die("fdatasync");
}

int main(int argc, char **argv)
{
	int64_t block = 4096, start = -1, stride = 0, count = 0, many = 1, plane = 0;
	uint64_t seed = 1;
	int option;
	while ((option = getopt(argc, argv, "b:o:s:n:c:p:r:l")) != -1) {
		switch (option) {
		case 'b': block = atoll(optarg); break;
		case 'o': start = atoll(optarg); break;
		case 's': stride = atoll(optarg); break;
		case 'n': count = atoll(optarg); break;
		case 'c': many = atoll(optarg); break;
		case 'p': plane = atoll(optarg); break;
		case 'r': seed = strtoull(optarg, NULL, 10); break;
		case 'l': seeks = 1; break;
		default: usage();
		}
	}
	if (optind + 2 != argc || block < 8 || many < 1 || many > MOST_CURSORS || count < 0) usage();
	const char *pattern = argv[optind], *path = argv[optind + 1];
	int solver = strcmp(pattern, "solver") == 0;

	struct stat st;
	fd = solver ? open(path, O_RDWR | O_CREAT | O_TRUNC, 0644) : open(path, O_RDONLY);
	if (fd < 0 || fstat(fd, &st) != 0) die(path);
	int64_t size = st.st_size, longest = block > SLAB ? block : SLAB;
	buffer = aligned_alloc(4096, (longest + 4095) / 4096 * 4096);
	if (!buffer) die("aligned_alloc");
	if (!stride) stride = block;
	int64_t last = (size - block) / llabs(stride) * llabs(stride);
	if (start < 0) start = stride < 0 ? last : 0;

	if (strcmp(pattern, "strided") == 0) {
		if (!count) count = stride < 0 ? start / -stride + 1 : (size - start + stride - 1) / stride;
		for (int64_t i = 0; i < count; i++)
			get(start + i * stride, block);
	} else if (strcmp(pattern, "nested") == 0) {
		for (int64_t i = 0, at = start; i < count; i++, at += block + stride) {
			get(at, block);
			get(at + block, block);
		}
	} else if (strcmp(pattern, "columns") == 0) {
		int64_t apart = stride / many < 65536 ? stride / many : 65536;
		for (int64_t column = 0; column < many; column++)
			for (int64_t row = 0; row < count; row++)
				get(start + column * apart + row * stride, block);
	} else if (strcmp(pattern, "tile") == 0) {
		for (int64_t z = 0; z < count; z++)
			for (int64_t y = 0; y < count; y++)
				get(start + z * plane + y * stride, block);
	} else if (strcmp(pattern, "lu") == 0) {
		lu(start, count);
	} else if (strcmp(pattern, "cyclic") == 0 || strcmp(pattern, "mixed") == 0) {
		cursors(size, block, start, stride, count, many, pattern[0] == 'm' ? &seed : NULL);
	} else if (strcmp(pattern, "run-gap") == 0) {
		for (int64_t run = 0, at = start; run < count; run++, at += many * block + stride)
			for (int64_t i = 0; i < many; i++)
				get(at + i * block, block);
	} else if (strcmp(pattern, "random") == 0) {
		for (int64_t i = 0; i < count; i++)
			get((int64_t)(next(&seed) % (uint64_t)(size / block)) * block, block);
	} else if (solver) {
		write_blocks(block, count, seed);
		for (int64_t i = count - 1; i >= 0; i--)
			get(i * block, block);
	} else {
		usage();
	}
	printf("%llu reads, checksum %016llx\n", (unsigned long long)reads, (unsigned long long)sum);
	return 0;
}
