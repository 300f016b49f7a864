// If the descriptor may have been moved between the seek and the write, the write may be anywhere:
// the prefetch thread waits for it.
//: KEEPS fetch_read(fd, &index, sizeof index)
//: KEEPS foreread_synchronize(2, FOREREAD_WAIT)
//: KEEPS foreread_synchronize(3, FOREREAD_WAIT)
//: DATA data 70000
//: RUN
//: COUNTS
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

static int back(int fd)
{
	return lseek(fd, -4080, SEEK_CUR) >= 0;
}

int main(void)
{
	unsigned sum = 0;
	int fd = open("data", O_RDWR);
	for (int i = 0; i < 100; i++) {
		unsigned char index;
		char record[100];
		lseek(fd, i, SEEK_SET);
		if (read(fd, &index, sizeof index) != 1)
			return 1;
		pread(fd, record, sizeof record, 8192 + index * 200);
		sum = sum * 3 + record[5];
		lseek(fd, 4096 + i * 4, SEEK_SET);
		if (i % 10 == 0)
			back(fd);
		write(fd, &sum, 1);
		lseek(fd, 4096, SEEK_SET);
		if (back(fd) && write(fd, &sum, 1) != 1)
			return 1;
	}
	printf("%u\n", sum);
	usleep(200000);
	return 0;
}
