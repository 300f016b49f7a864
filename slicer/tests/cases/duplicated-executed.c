// A child that replaces its standard input before it executes another program does not affect the program's own reads.
//: STATUS main sliced
//: KEEPS foreread_receive
//: KEEPS prefetch_pread(fd, 1, atoi(line) * 9000L)
//: FILE data data
//: DATA data 200000
//: INPUT 5\n6\n7\n
//: RUN
//: COUNTS
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

int main(void)
{
	int fd = open("data", O_RDONLY);
	unsigned sum = 0;
	char line[20];
	while (fgets(line, sizeof line, stdin)) {
		unsigned char c = 0;
		pread(fd, &c, 1, atoi(line) * 9000L);
		sum = sum * 3 + c;
		if (fork() == 0) {
			int in = open("data", O_RDONLY);
			dup2(in, 0);
			execlp("true", "true", (char *)0);
			_exit(1);
		}
		wait(0);
	}
	printf("%u\n", sum);
	usleep(200000);
	return 0;
}
