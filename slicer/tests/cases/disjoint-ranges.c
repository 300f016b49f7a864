// Data is used in one part of a file and written in another: the thread waits only for the opening.
//: KEEPS fetch_pread(fd, &index, sizeof index, (off_t)i * (off_t)sizeof index)
//: DROPS foreread_synchronize(2
//: DATA data 70000
//: RUN
//: COUNTS
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

int main(void)
{
	unsigned sum = 0;
	int fd = open("data", O_RDWR);
	for (int i = 0; i < 100; i++) {
		unsigned char index;
		char record[100];
		pread(fd, &index, sizeof index, (off_t)i * (off_t)sizeof index);
		pread(fd, record, sizeof record, 8192 + index * 200);
		sum = sum * 3 + record[5];
		pwrite(fd, &sum, sizeof sum, 4096 + i * 4);
	}
	printf("%u\n", sum);
	usleep(200000);
	return 0;
}
