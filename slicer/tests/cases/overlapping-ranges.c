// If the bytes that are written may be bytes that are used, the prefetch thread waits for the write.
//: KEEPS fetch_pread(fd, &index, sizeof index, (off_t)i * (off_t)sizeof index)
//: KEEPS foreread_synchronize(2, FOREREAD_WAIT)
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
		pwrite(fd, &sum, 1, 99 - i);
	}
	printf("%u\n", sum);
	usleep(200000);
	return 0;
}
