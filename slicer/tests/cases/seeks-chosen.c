// A seek that may not be made says nothing of where the write after it goes: the prefetch thread waits for the write.
//: KEEPS fetch_read(fd, &index, sizeof index)
//: KEEPS foreread_synchronize(2, FOREREAD_WAIT)
//: KEEPS foreread_synchronize(3, FOREREAD_WAIT)
//: DATA data 70000
//: RUN
//: COUNTS
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

static void chosen(int fd, int i, unsigned char sum)
{
	i % 10 ? lseek(fd, 4096, SEEK_SET) : 0;
	write(fd, &sum, 1);
}

static void either(int fd, int i, unsigned char sum)
{
	i % 10 && lseek(fd, 4096, SEEK_SET);
	write(fd, &sum, 1);
}

int main(void)
{
	unsigned char sum = 0;
	int fd = open("data", O_RDWR);
	for (int i = 0; i < 100; i++) {
		unsigned char index;
		char record[100];
		lseek(fd, i, SEEK_SET);
		if (read(fd, &index, sizeof index) != 1)
			sum++;
		pread(fd, record, sizeof record, 8192 + index * 200);
		sum = sum * 3 + record[5];
		chosen(fd, i, sum);
		either(fd, i, sum);
	}
	printf("%d\n", sum);
	usleep(200000);
	return 0;
}
