// Branches that look like failures and decide where the program reads: by break, goto, return,
// through pointers and calls, nested, tested by == -1 and by != 0, in conditional expressions.
//: KEEPS to(&at, probe);
//: KEEPS if (compare(probe, 2) == -1)
//: KEEPS if (compare(probe, 3) != 0)
//: KEEPS goto low;
//: KEEPS move(&at)
//: KEEPS chosen(probe)
//: DATA data 4096
//: RUN
//: COUNTS
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int fd;
static unsigned char block[8];

static int compare(unsigned char probe, int which)
{
	return block[which] < probe ? -1 : block[which] > probe;
}

static void move(unsigned *at)
{
	*at = (*at + 11) % 100;
}

/* By return, of no error and of a value like an error: the caller reads at the returned place. */
static int chosen(unsigned char probe)
{
	if (compare(probe, 0) < 0)
		return 5;
	if (compare(probe, 4) < 0)
		return -1;
	return 9;
}

static void to(unsigned *where, unsigned char probe)
{
	while (1) {
		if (compare(probe, 1) < 0)
			break;
		*where += 3;
		return;
	}
	*where += 1;
}

int main(void)
{
	unsigned at = 0;
	fd = open("data", O_RDONLY);
	for (int i = 0; i < 80; i++) {
		unsigned char probe = i * 37;
		at %= 400;
		if (pread(fd, block, sizeof block, at * 8) < 0)
			return 1;
		at += 2 + chosen(probe);
		to(&at, probe);
		if (compare(probe, 2) == -1) {
			move(&at);
			continue;
		}
		if (compare(probe, 3) != 0) {
			if (compare(probe, 4) < 0) {
				at += 1;
				goto low;
			}
			at += 7;
			continue;
		}
		at = compare(probe, 5) < 0 ? at + 1 : at + 2;
		compare(probe, 6) < 0 ? move(&at) : (void)0;
	low:
		at += block[7] % 3;
	}
	printf("%u\n", at);
	return 0;
}
