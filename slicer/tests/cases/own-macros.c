// Macros with the names of the functions that they expand to: the prefetch functions use the functions.
//: STATUS main sliced
//: STATUS at pure
//: KEEPS #undef at
//: KEEPS #undef step
//: DATA data 200000
//: RUN
//: COUNTS
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

static long at(long place, int line)
{
	return place + line;
}
#define at(place) at(place, __LINE__)

struct walk {
	long step;
};
#define step step * 2
#define FIRST 0x10
#define SECOND 0x20

int main(void)
{
	enum { Both = FIRST | SECOND };
	struct walk walk = {3000 + Both};
	int fd = open("data", O_RDONLY);
	unsigned sum = 0;
	for (int n = 0; n < 20; n++) {
		unsigned char c = 0;
		pread(fd, &c, 1, at(n * walk.step));
		sum = sum * 3 + c;
	}
	printf("%u\n", sum);
	usleep(200000);
	return 0;
}
