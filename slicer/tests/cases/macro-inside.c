// A call in a loop of a macro cannot be counted: the prefetch thread reads for itself.
//: STATUS main sliced
//: KEEPS FOREREAD_UNCOUNTED(fetch_pread(fd, &c, 1, i))
//: KEEPS prefetch_pread(fd, 1, 3000)
//: PROGRAM LOOP(20)
//: DATA data 4096
//: RUN
//: COUNTS
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#define LOOP(n) for (int i = 0; i < n; i++) { pread(fd, &c, 1, i); }

int main(void)
{
	unsigned char c = 0;
	int fd = open("data", O_RDONLY);
	LOOP(20)
	pread(fd, &c, 1, 3000);
	printf("%d\n", c);
	usleep(200000);
	return c;
}
