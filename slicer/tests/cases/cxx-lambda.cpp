// Lambda expressions that are only called are sliced in place: their reads are announced and counted,
// and they capture the variables that they name. The result of one decides where another reads.
//: KEEPS auto place = [&](int i) -> int
//: KEEPS auto look = [&fd, &at, place](int i) -> unsigned int
//: KEEPS prefetch_pread(fd, 1, place(i) + at)
//: KEEPS at += 7
//: DROPS sum
//: DROPS calls
//: STATUS main sliced
//: DATA data 70000
//: RUN
//: COUNTS
#include <cstdio>
#include <fcntl.h>
#include <unistd.h>

int main()
{
	unsigned sum = 0, calls = 0;
	int fd = open("data", O_RDONLY), at = 0, scale = 100;
	auto place = [&](int i) {
		calls++;
		at += 7;
		if (i > 20)
			return i * scale / 2;
		return i * scale;
	};
	auto look = [&fd, &at, &sum, place](int i) {
		unsigned char c = 0;
		pread(fd, &c, 1, place(i) + at);
		sum = sum * 3 + c;
		return sum;
	};
	for (int i = 0; i < 50; i++)
		look(i);
	printf("%u %u\n", sum, calls);
	usleep(200000);
	return 0;
}
