// Elements of an array in a structure are distinguished like those of a variable, for all objects
// of the type together. An access through a pointer, by an unknown index or to the memory as a
// whole may be of any element, and so may an access to a member of a union.
//: KEEPS index->start[0] = 300
//: DROPS start[1]
//: KEEPS index->any[0] = 40
//: KEEPS index->any[1] = 50
//: KEEPS index->moved[0] = 7
//: KEEPS shift(&index->moved[1])
//: KEEPS index->cleared[0] = 9
//: KEEPS memset(index->cleared, 0, sizeof index->cleared)
//: DROPS cleared[1]
//: KEEPS grid.row[0][i] = i
//: DROPS row[1]
//: KEEPS words.half[1] = 3
//: KEEPS words.both = 5
//: DROPS prefetch_open(index.file[1]
//: DATA data 70000
//: DATA other 100
//: RUN
//: COUNTS
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct index {
	const char *file[2];
	off_t start[2], any[2], moved[3], cleared[2];
};

static struct {
	int row[2][8];
} grid;

static union {
	int half[2];
	long both;
} words;

static void shift(off_t *pointer)
{
	pointer[-1] += 900;
}

static void fill(struct index *index, int fd)
{
	index->start[0] = 300;
	index->start[1] = lseek(fd, 0, SEEK_END);
	index->any[0] = 40;
	index->any[1] = 50;
	index->moved[0] = 7;
	shift(&index->moved[1]);
	index->cleared[0] = 9;
	memset(index->cleared, 0, sizeof index->cleared);
	index->cleared[1] = 8;
}

int main(void)
{
	struct index index = {{"data", "other"}};
	char c;
	unsigned sum = 0;
	int fd = open(index.file[0], O_RDONLY);
	int unused = open(index.file[1], O_RDONLY);
	fill(&index, unused);
	words.both = 5;
	words.half[1] = 3;
	for (int i = 0; i < 8; i++) {
		grid.row[0][i] = i;
		grid.row[1][i] = sum++;
	}
	for (int i = 0; i < 40; i++) {
		pread(fd, &c, 1, index.start[0] + index.any[i % 2] * i + index.moved[0] +
				 index.cleared[0] + grid.row[0][i % 8] + words.half[0]);
		sum = sum * 3 + c;
	}
	printf("%u %ld %ld %d %d\n", sum, (long)index.start[1], (long)index.cleared[1], grid.row[1][3], words.half[1]);
	usleep(200000);
	return 0;
}
