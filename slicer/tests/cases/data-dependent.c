// Addresses inside the data: a chain of blocks. The links are really read, the payload is not.
//: KEEPS fetch_pread(fd, &next, sizeof next, at)
//: KEEPS prefetch_pread(fd, 24, at + 8)
//: DROPS sum
//: DATA data 65536
//: RUN
//: COUNTS
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

int main(void)
{
	int fd = open("data", O_RDONLY);
	unsigned short next;
	unsigned char payload[24];
	unsigned long sum = 0;
	long at = 0;
	for (int hops = 0; hops < 100; hops++) {
		if (pread(fd, &next, sizeof next, at) != sizeof next)
			break;
		pread(fd, payload, 24, at + 8);
		for (int i = 0; i < 24; i++)
			sum = sum * 31 + payload[i];
		at = next;
	}
	printf("%lu %ld\n", sum, at);
	usleep(200000);
	return 0;
}
