// dup2() gives a descriptor a literal number: reads with that number are of the file.
//: STATUS main sliced
//: KEEPS if (prefetch_dup2(fd, 0) < 0)
//: KEEPS prefetch_lseek(0, (19 - n) * 9000L, SEEK_SET);
//: KEEPS if (prefetch_read(0, 128) <= 0)
//: KEEPS prefetch_pread(7, 16, n * 11000L);
//: FILE data data
//: DATA data 200000
//: RUN
//: COUNTS
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

int main(void)
{
	int fd = open("data", O_RDONLY);
	unsigned sum = 0;
	if (dup2(fd, 0) < 0)
		return 1;
	close(fd);
	for (int n = 0; n < 20; n++) {
		unsigned char block[128] = {0};
		lseek(0, (19 - n) * 9000L, SEEK_SET);
		if (read(0, block, 128) <= 0)
			break;
		sum = sum * 3 + block[5];
	}
	if (dup2(0, 7) != 7)
		return 2;
	for (int n = 0; n < 10; n++) {
		unsigned char few[16] = {0};
		pread(7, few, 16, n * 11000L);
		sum = sum * 3 + few[2];
	}
	printf("%u\n", sum);
	usleep(200000);
	return 0;
}
