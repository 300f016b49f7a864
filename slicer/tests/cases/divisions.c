// The runtime's functions make divisions by possible powers of two; other divisions are unchanged.
//: KEEPS prefetch_quotient(at, size)
//: KEEPS prefetch_remainder(at, size)
//: KEEPS at / 16
//: KEEPS wide / (long)size
//: DATA data 70000
//: RUN
//: COUNTS
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

static const int sizes[] = { 1, 2, 64, 7, -8, -1, 1 << 30 };

int main(void)
{
	unsigned sum = 0;
	int fd = open("data", O_RDONLY);
	for (int n = 0; n < 7; n++)
		for (int at = -40; at < 400; at++) {
			int size = sizes[n];
			long wide = at;
			unsigned char byte = 0;
			off_t place = at / size * 50L + at % size + at / 16 + wide / (long)size;
			/* Bytes in front of the file are not read and not counted. */
			if (place >= 0) {
				pread(fd, &byte, 1, place);
				sum = sum * 31 + byte + (unsigned)place;
			}
		}
	printf("%u\n", sum);
	usleep(200000);
	return 0;
}
