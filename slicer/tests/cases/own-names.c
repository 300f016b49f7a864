// The program's macros have names that the prefetch library's header might use.
//: STATUS main sliced
//: DATA data 65536
//: RUN
//: COUNTS
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#define path "data"
#define flags O_RDONLY
#define data u.bytes
#define count 20
#define offset (i * 1000)
#define format "%d\n"

static struct { union { unsigned char bytes[8]; long number; } u; } block;

int main(void)
{
	int fd = open(path, flags);
	for (int i = 0; i < count; i++)
		pread(fd, block.data, 8, offset);
	printf(format, block.data[0]);
	usleep(200000);
	return 0;
}
