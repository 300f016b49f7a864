// The result of closing a file that is not prefetched decides where the program reads.
//: STATUS main sliced
//: DROPS fclose(log)
//: ASSUMED closing.c:10: fclose() succeeds
//: DATA data 70000
//: RUN
//: COUNTS
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

int main(void)
{
	int fd = open("data", O_RDONLY), sum = 0;
	FILE *log = fopen("log", "w");
	long step = fclose(log) ? 100 : 3000;
	for (int n = 0; n < 20; n++) {
		unsigned char c = 0;
		pread(fd, &c, 1, n * step);
		sum += c;
	}
	printf("%d\n", sum);
	usleep(200000);
	return 0;
}
