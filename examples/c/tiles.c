/*
 * tiles.c - an image that is larger than memory, blurred column by column and row by row.
 *
 *     tiles make IMAGE COLUMNS ROWS              makes the files
 *     tiles plain|foreread IMAGE COLUMNS ROWS    reads and blurs; the same result either way
 *
 * The image is an array of tiles of 64 x 64 pixels of 4 bytes. A blur is two passes: down the
 * columns, whose tiles lie a whole row apart in the file, and along the rows of what the first
 * pass made, which is laid out column by column. Each pass jumps through its file; read-ahead
 * fetches what nobody wants. The order is known, though: two loops.
 *
 * So that only reads are timed, `make` writes both files, IMAGE and IMAGE.columns, and the result
 * is printed as a checksum.
 *
 * Everything about foreread is between the first two rules: the blur does not know of it.
 */
#define _FILE_OFFSET_BITS 64
#define _POSIX_C_SOURCE 200809L
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <foreread.h>

enum { SIDE = 64, CHANNELS = 4, LINE = SIDE * CHANNELS, TILE = SIDE * LINE, RADIUS = 8 };

struct image {
	unsigned long columns, rows;
	int by_rows;    /* the image: its tiles row after row */
	int by_columns; /* the first pass's: its tiles column after column */
};

/* Where a tile is in the file whose tiles lie row after row. */
static uint64_t in_rows(const struct image *image, unsigned long column, unsigned long row)
{
	return ((uint64_t)row * image->columns + column) * TILE;
}

/* Where it is in the file whose tiles lie column after column. */
static uint64_t in_columns(const struct image *image, unsigned long column, unsigned long row)
{
	return ((uint64_t)column * image->rows + row) * TILE;
}

static void die(const char *what)
{
	perror(what);
	exit(1);
}

/* ---- What is coming ---------------------------------------------------------------------- */

/* The list: made as it is asked for, since an image may have more tiles than a list has room. */
struct ahead {
	const struct image *image;
	foreread_client *client;
	uint64_t told; /* accesses handed over so far */
};

/* The access of a number: both passes' loops, as a function. */
static foreread_entry access_of(const struct image *image, uint64_t number)
{
	uint64_t tiles = (uint64_t)image->columns * image->rows;
	foreread_entry entry = {0, 0, 0, TILE};

	if (number < tiles) {
		entry.fd = image->by_rows;
		entry.offset = in_rows(image, number / image->rows, number % image->rows);
	} else {
		number -= tiles;
		entry.fd = image->by_columns;
		entry.offset = in_columns(image, number % image->columns, number / image->columns);
	}
	return entry;
}

/* Hands over what there is room for. FOREREAD_DONE: call back when it runs out. */
static void announce(struct ahead *ahead)
{
	uint64_t all = 2 * (uint64_t)ahead->image->columns * ahead->image->rows;
	foreread_entry entries[512];
	int64_t accepted = 1;

	while (ahead->told < all && accepted > 0) {
		size_t n;

		for (n = 0; n < 512 && ahead->told + n < all; n++)
			entries[n] = access_of(ahead->image, ahead->told + n);
		accepted = foreread_request_prefetching(ahead->client, entries, n,
							FOREREAD_APPEND | FOREREAD_DONE);
		if (accepted > 0)
			ahead->told += (uint64_t)accepted;
	}
}

/* The callback: the list has run out. */
static void more(void *arg, int marked_fd, int64_t marked_offset, int fd, int64_t offset)
{
	(void)marked_fd, (void)marked_offset, (void)fd, (void)offset;
	announce(arg);
}

/* Starts prefetching. If that fails, the program is as fast as it was. */
static void start(struct ahead *ahead, const struct image *image)
{
	int error = foreread_register_client(&ahead->client, NULL, more, ahead);

	ahead->image = image;
	ahead->told = 0;
	if (error == 0)
		error = foreread_register_region(ahead->client, image->by_rows, 0, UINT64_MAX);
	if (error >= 0)
		error = foreread_register_region(ahead->client, image->by_columns, 0, UINT64_MAX);
	if (error < 0)
		fprintf(stderr, "no prefetching: %s\n", foreread_strerror(error));
	else
		announce(ahead);
}

/* ---- The blur ---------------------------------------------------------------------------- */

static void read_tile(int fd, uint64_t offset, unsigned char *tile)
{
	ssize_t got = pread(fd, tile, TILE, (off_t)offset);

	if (got != TILE) {
		if (got < 0)
			die("pread");
		fprintf(stderr, "the file ends early: is it of this size?\n");
		exit(1);
	}
}

/* Box-blurs a line of samples that lie `step` apart, carrying the window over from the tile
 * before, and adds the result to a checksum. */
static uint64_t blur(const unsigned char *line, size_t step, unsigned char window[2 * RADIUS + 1],
		     unsigned long *at, unsigned int *sum, uint64_t check)
{
	size_t i;

	for (i = 0; i < SIDE; i++) {
		unsigned char *oldest = &window[*at % (2 * RADIUS + 1)];

		*sum += line[i * step];
		*sum -= *oldest;
		*oldest = line[i * step];
		++*at;
		check = check * 31 + *sum / (2 * RADIUS + 1);
	}
	return check;
}

/* One pass: along `lines` lines of `length` tiles each, which lie where `place` says. */
static uint64_t pass(const struct image *image, int columns)
{
	unsigned long lines = columns ? image->columns : image->rows;
	unsigned long length = columns ? image->rows : image->columns;
	unsigned char *tile = malloc(TILE);
	uint64_t check = 0;
	unsigned long line, along;

	if (tile == NULL)
		die("malloc");
	for (line = 0; line < lines; line++) {
		unsigned char window[LINE][2 * RADIUS + 1];
		unsigned int sum[LINE];
		unsigned long at[LINE];
		size_t i;

		memset(window, 0, sizeof(window));
		memset(sum, 0, sizeof(sum));
		memset(at, 0, sizeof(at));
		for (along = 0; along < length; along++) {
			if (columns)
				read_tile(image->by_rows, in_rows(image, line, along), tile);
			else
				read_tile(image->by_columns, in_columns(image, along, line), tile);
			/* Down a column every LINE bytes is the next sample, along a row every CHANNELS. */
			for (i = 0; i < LINE; i++) {
				const unsigned char *first =
				    columns ? tile + i : tile + i / CHANNELS * LINE + i % CHANNELS;

				check = blur(first, columns ? LINE : CHANNELS, window[i], &at[i],
					     &sum[i], check);
			}
		}
	}
	free(tile);
	return check;
}

/* ---- The program ------------------------------------------------------------------------- */

static int open_or_die(const char *path, int flags)
{
	int fd = open(path, flags, 0644);

	if (fd < 0)
		die(path);
	return fd;
}

/* Writes a file of so many tiles, all different. */
static void make(const char *path, uint64_t tiles)
{
	int fd = open_or_die(path, O_WRONLY | O_CREAT | O_TRUNC);
	unsigned char tile[TILE];
	uint64_t n, state = 88172645463325252u;

	for (n = 0; n < tiles; n++) {
		size_t i;

		for (i = 0; i < TILE; i += sizeof(state)) {
			state ^= state << 13;
			state ^= state >> 7;
			state ^= state << 17;
			memcpy(tile + i, &state, sizeof(state));
		}
		if (write(fd, tile, TILE) != TILE)
			die(path);
	}
	if (fsync(fd) != 0 || close(fd) != 0)
		die(path);
}

static double now(void)
{
	struct timespec time;

	clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

int main(int argc, char **argv)
{
	struct ahead ahead = {NULL, NULL, 0};
	struct image image;
	char second[4096];
	uint64_t down, along;
	double begin;
	int help;

	image.columns = argc == 5 ? strtoul(argv[3], NULL, 10) : 0;
	image.rows = argc == 5 ? strtoul(argv[4], NULL, 10) : 0;
	if (image.columns == 0 || image.rows == 0 ||
	    (size_t)snprintf(second, sizeof(second), "%s.columns", argv[2]) >= sizeof(second)) {
		fprintf(stderr, "usage: tiles make|plain|foreread IMAGE COLUMNS ROWS\n");
		return 2;
	}
	if (strcmp(argv[1], "make") == 0) {
		make(argv[2], (uint64_t)image.columns * image.rows);
		make(second, (uint64_t)image.columns * image.rows);
		return 0;
	}
	help = strcmp(argv[1], "foreread") == 0;
	image.by_rows = open_or_die(argv[2], O_RDONLY);
	image.by_columns = open_or_die(second, O_RDONLY);

	begin = now();
	if (help)
		start(&ahead, &image);
	down = pass(&image, 1);
	along = pass(&image, 0);
	if (ahead.client != NULL)
		foreread_unregister_client(ahead.client);
	printf("checksum %016llx %016llx\n", (unsigned long long)down, (unsigned long long)along);
	fprintf(stderr, "%.3f s\n", now() - begin);
	return 0;
}
