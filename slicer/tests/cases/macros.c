// Calls in macros: one that is the macro's whole text, one in its argument; line numbers stay.
//: PROGRAM BLOCK(fd, c); foreread_call();
//: DATA data 4096
//: RUN
//: COUNTS
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#define BLOCK(fd, into) read(fd, &into, 1)
#define CHECK(call) ((call) < 0 ? fprintf(stderr, "%d\n", __LINE__) : 0)

int main(void)
{
	unsigned char c = 0;
	int fd = open("data", O_RDONLY);
	for (int i = 0; i < 20; i++) {
		CHECK(lseek(fd, i * 100, SEEK_SET));
		BLOCK(fd, c);
		CHECK(pread(fd, &c, 1, i));
		printf("%d %d\n", c, __LINE__);
	}
	usleep(200000);
	return 0;
}
