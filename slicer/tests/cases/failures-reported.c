// A branch that reports and continues elsewhere is a failure unless a value that it assigns is
// needed; so is a branch that leaves by a label at the end after closing its files.
//: DROPS leave(
//: DROPS memcmp
//: KEEPS if (block[1] == 77)
//: KEEPS at += 64;
//: ASSUMED this failure does not happen
//: DATA data 8192
//: RUN
//: COUNTS
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void leave(int fd)
{
	close(fd);
	fprintf(stderr, "left\n");
}

static int run(int fd)
{
	unsigned char block[64], twice[64];
	int at = 0, result = -1;
	char *copy = malloc(64);
	for (int i = 0; i < 60; i++) {
		if (pread(fd, block, 2, at) < 0)
			goto out;
		if (pread(fd, twice, sizeof twice, 64 * i) < 0)
			goto out;
		if (memcmp(twice, "no such thing", 13) == 0) {
			fprintf(stderr, "damaged\n");
			continue;
		}
		if (memcmp(twice, "nor this", 8) == 0) {
			leave(fd);
			return -1;
		}
		if (memcmp(twice, "nor that", 8) == 0) {
			close(fd);
			goto failed;
		}
		if (block[1] == 77) {
			fprintf(stderr, "one is left out\n");
			at += 64;
			continue;
		}
		at += 32;
	}
	result = 0;
out:
	free(copy);
	close(fd);
	return result;
failed:
	free(copy);
	return -1;
}

int main(void)
{
	if (run(open("data", O_RDONLY)) < 0)
		return 1;
	puts("done");
	return 0;
}
