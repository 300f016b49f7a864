// A file with the number of standard input: the stream reads it, too, until the old input is put back.
//: STATUS main sliced
//: KEEPS prefetch_dup2(fd, fileno(stdin));
//: KEEPS prefetch_fseek(stdin, n * 9000L + c, SEEK_SET);
//: KEEPS c = fetch_getc(stdin);
//: KEEPS prefetch_dup2(saved, 0);
//: FILE data data
//: DATA data 200000
//: RUN
//: COUNTS
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

int main(void)
{
	int fd = open("data", O_RDONLY), saved = dup(0);
	unsigned sum = 0;
	int c = 0;
	dup2(fd, fileno(stdin));
	close(fd);
	for (int n = 0; n < 20 && c != EOF; n++) {
		fseek(stdin, n * 9000L + c, SEEK_SET);
		c = getchar();
		sum = sum * 3 + c;
	}
	dup2(saved, 0);
	close(saved);
	printf("%u\n", sum);
	usleep(200000);
	return 0;
}
