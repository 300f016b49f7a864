/*
 * random_blocks.c - the smallest use: the program knows where it will read, and says so first.
 *
 *     random_blocks FILE [plain]
 *
 * Reads 4096 blocks of a file in random order, with foreread or, to compare, without.
 */
#define _FILE_OFFSET_BITS 64
#define _POSIX_C_SOURCE 200809L
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <foreread.h>

enum { BLOCKS = 4096, BLOCK = 4096 };

int main(int argc, char **argv)
{
	static foreread_entry list[BLOCKS];
	static unsigned char block[BLOCK];
	foreread_client *client = NULL;
	unsigned long long sum = 0, state = 42;
	struct stat facts;
	int fd, i;

	fd = argc > 1 ? open(argv[1], O_RDONLY) : -1;
	if (fd < 0 || fstat(fd, &facts) != 0 || facts.st_size < BLOCK) {
		fprintf(stderr, "usage: random_blocks FILE [plain]   (4 KiB or more)\n");
		return 2;
	}
	for (i = 0; i < BLOCKS; i++) {
		state = state * 6364136223846793005u + 1442695040888963407u;
		list[i].fd = fd;
		list[i].offset = (state >> 16) % (unsigned long long)(facts.st_size / BLOCK) * BLOCK;
		list[i].length = BLOCK;
	}

	if (argc == 2) {
		/* These three lines are all. A failure costs the gain and nothing else. */
		foreread_register_client(&client, NULL, NULL, NULL);
		foreread_register_region(client, fd, 0, UINT64_MAX);
		foreread_request_prefetching(client, list, BLOCKS, FOREREAD_SET);
	}

	for (i = 0; i < BLOCKS; i++) {
		if (pread(fd, block, BLOCK, (off_t)list[i].offset) != BLOCK) {
			perror("pread");
			return 1;
		}
		sum = sum * 31 + block[i];
	}
	foreread_unregister_client(client);
	printf("checksum %016llx\n", sum);
	return 0;
}
