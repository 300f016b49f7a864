// Standard input decides where to read: the program reads it and sends the data.
//: PROGRAM fgets(line, sizeof line, stdin)
//: PROGRAM foreread_send(1, &foreread_any, sizeof(int));
//: KEEPS foreread_receive(1, &foreread_any, sizeof(int));
//: KEEPS prefetch_pread(fd, 1, strtol(line, 0, 10))
//: DATA data 4096
//: INPUT 10\n2000\n77\n4000\n
//: RUN
//: COUNTS
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int main(void)
{
	char line[80];
	unsigned char c = 0;
	int fd = open("data", O_RDONLY);
	while (fgets(line, sizeof line, stdin) != 0) {
		pread(fd, &c, 1, strtol(line, 0, 10));
		printf("%d\n", c);
	}
	usleep(200000);
	return 0;
}
