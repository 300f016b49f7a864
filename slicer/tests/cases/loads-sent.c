// A load that only decides where the program reads a configuration file is announced if the program sends the file.
//: ARGS --config=send
//: FILE places configuration
//: FILE data data
//: KEEPS prefetch_load(&map[i * 177 % 200 * 1000]
//: DATA data 204800
//: DATA map 204800
//: DATA places 4096
//: RUN
//: COUNTS
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

static unsigned sum;

static void found(unsigned value)
{
	for (int i = 0; i < 200; i++)
		sum = sum * 5 + (value ^ sum >> 3);
}

int main(void)
{
	int places = open("places", O_RDONLY), fd = open("data", O_RDONLY), at = open("map", O_RDONLY);
	const unsigned char *map = mmap(0, 204800, PROT_READ, MAP_PRIVATE, at, 0);
	if (map == MAP_FAILED)
		return 1;
	for (int i = 0; i < 200; i++) {
		unsigned char place, block[8];
		unsigned where = map[i * 177 % 200 * 1000];
		pread(places, &place, 1, where);
		pread(fd, block, sizeof block, place * 512);
		found(block[2]);
	}
	printf("%u\n", sum);
	usleep(200000);
	return 0;
}
