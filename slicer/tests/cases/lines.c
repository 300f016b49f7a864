// getline from standard input: each side has its own buffer.
//: KEEPS __builtin_realloc(
//: DATA data 4096
//: INPUT 5\n1000\na longer line that makes the buffer grow, and grow, and grow, and grow, and grow, and grow, and grow\n3\n
//: RUN
//: COUNTS
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int main(void)
{
	char *line = NULL;
	size_t room = 0;
	unsigned char c = 0;
	int fd = open("data", O_RDONLY);
	while (getline(&line, &room, stdin) > 0) {
		pread(fd, &c, 1, atoi(line));
		printf("%d\n", c);
	}
	free(line);
	usleep(200000);
	return 0;
}
