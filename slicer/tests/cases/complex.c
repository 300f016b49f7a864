// Complex numbers decide where the program reads.
//: KEEPS z *= 1i
//: DATA data 65536
//: RUN
//: COUNTS
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

int main(void)
{
	unsigned char c = 0;
	int fd = open("data", O_RDONLY), sum = 0;
	_Complex double z = 200 + 100i;
	for (int i = 0; i < 8; i++) {
		z *= 1i;
		pread(fd, &c, 1, (off_t)(10000 + 50 * __real__ z));
		sum += c;
	}
	printf("%d\n", sum);
	usleep(200000);
	return 0;
}
