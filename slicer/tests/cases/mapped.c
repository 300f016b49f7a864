// A mapped file: an index in it is read in place, and bytes that are only copied out are announced.
//: KEEPS map = prefetch_mmap(0, status.st_size, PROT_READ, MAP_PRIVATE, fd, 0)
//: KEEPS prefetch_touch(map + index[i], sizeof record)
//: PROGRAM memcpy(record, map + index[i], sizeof record); foreread_call();
//: DROPS sum
//: DATA data 70000
//: UNSEEN a mapped file is looked at by loads
//: RUN
//: COUNTS
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

int main(void)
{
	struct stat status;
	unsigned char record[200];
	unsigned sum = 0;
	int fd = open("data", O_RDONLY);
	if (fstat(fd, &status) < 0)
		return 1;
	const unsigned char *map = mmap(0, status.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (map == MAP_FAILED)
		return 1;
	const unsigned short *index = (const unsigned short *)(map + 4096);
	for (int i = 0; i < 100; i++) {
		memcpy(record, map + index[i], sizeof record);
		for (unsigned k = 0; k < sizeof record; k++)
			sum = sum * 3 + record[k];
	}
	printf("%u\n", sum);
	usleep(200000);
	return 0;
}
