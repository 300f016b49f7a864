// Ranges after a seek right before the read or the write are distinguished like those of pread()
// and pwrite(): the thread waits only for the opening.
//: KEEPS fetch_read(fd, &index, sizeof index)
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
		lseek(fd, i, SEEK_SET);
		if (read(fd, &index, sizeof index) != 1)
			sum++;
		pread(fd, record, sizeof record, 8192 + index * 200);
		sum = sum * 3 + record[5];
		/* Whether a call elsewhere is made does not matter. */
		i % 10 || usleep(1);
		(void)lseek(fd, 4096 + i * 4, SEEK_SET);
		write(fd, &sum, sizeof sum);
	}
	printf("%u\n", sum);
	usleep(200000);
	return 0;
}
