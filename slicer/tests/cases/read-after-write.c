// A file that the program writes and reads back: the prefetch thread waits for the open and for
// each write, because it uses the written data.
//: PROGRAM write(fd, &link, sizeof link); foreread_synchronize(
//: KEEPS FOREREAD_WAIT), prefetch_lseek(fd, sizeof link, SEEK_CUR)
//: DATA data 4096
//: RUN
//: COUNTS
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

int main(void)
{
	unsigned short link;
	unsigned char c = 0;
	int in = open("data", O_RDONLY);
	int fd = open("scratch", O_RDWR | O_CREAT | O_TRUNC, 0600);
	for (int i = 0; i < 20; i++) {
		link = i * i * 3;
		write(fd, &link, sizeof link);
	}
	lseek(fd, 0, SEEK_SET);
	while (read(fd, &link, sizeof link) == sizeof link) {
		pread(in, &c, 1, link);
		printf("%d\n", c);
	}
	usleep(200000);
	return 0;
}
