// A function that only copies from a mapped file does not run unchanged: it announces.
//: STATUS copy sliced
//: KEEPS pf_copy(map + i * 37 % 100 * 512)
//: KEEPS prefetch_touch(from, 32)
//: DATA data 65536
//: UNSEEN a mapped file is looked at by loads
//: RUN
//: COUNTS
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static char record[32];

static void copy(const char *from)
{
	memcpy(record, from, 32);
}

int main(void)
{
	unsigned sum = 0;
	int fd = open("data", O_RDONLY);
	const char *map = mmap(0, 65536, PROT_READ, MAP_PRIVATE, fd, 0);
	if (map == MAP_FAILED)
		return 1;
	for (int i = 0; i < 100; i++) {
		copy(map + i * 37 % 100 * 512);
		sum = sum * 3 + record[5];
	}
	printf("%u\n", sum);
	usleep(200000);
	return 0;
}
