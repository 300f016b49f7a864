// A read in a macro that is not counted nevertheless moves the position in the file.
//: KEEPS FOREREAD_UNCOUNTED(fetch_read(fd, b, i))
//: DATA data 65536
//: RUN
//: COUNTS
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#define CHECK(call) if ((call) < 0) { perror(#call); return 1; }

int main(void)
{
	unsigned char b[32];
	int fd = open("data", O_RDONLY), n = 0;
	lseek(fd, 300, SEEK_SET);
	for (int i = 0; i < 20; i++)
		CHECK(read(fd, b, i))
	while (read(fd, b, 32) > 0 && b[0] != 200)
		n++;
	printf("%d\n", n);
	usleep(200000);
	return 0;
}
