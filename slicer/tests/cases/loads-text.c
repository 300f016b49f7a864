// A loop that needs each byte to find the next is not in the prefetch thread; an index whose
// entries are positions of records is read in place.
//: KEEPS prefetch_loads(&map[index[r] + (0)], &map[index[r] + (0 + 1)], sizeof(unsigned char), 200)
//: DROPS lines
//: DROPS sum
//: DATA data 70000
//: UNSEEN a mapped file is looked at by loads
//: RUN
//: COUNTS
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

int main(void)
{
	unsigned sum = 0, lines = 0;
	int fd = open("data", O_RDONLY);
	const unsigned char *map = mmap(0, 70000, PROT_READ, MAP_PRIVATE, fd, 0);
	if (map == MAP_FAILED)
		return 1;
	const unsigned short *index = (const unsigned short *)(map + 4096);
	for (int r = 0; r < 100; r++)
		for (int k = 0; k < 200; k++)
			sum = sum * 3 + map[index[r] + k];
	for (int r = 0; r < 100; r++) {
		const unsigned char *text = map + 100 * r;
		while (*text != '\n')
			text++;
		lines += text - map;
	}
	printf("%u %u\n", sum, lines);
	usleep(200000);
	return 0;
}
