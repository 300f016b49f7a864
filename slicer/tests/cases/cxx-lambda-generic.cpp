// A generic lambda expression that is called with arguments of one type stands for its one instantiation.
//: STATUS main sliced
//: KEEPS auto at = [fd](long place) -> int
//: KEEPS prefetch_pread(fd, 1, place)
//: DATA data 200000
//: RUN
//: COUNTS
#include <algorithm>
#include <cstdio>
#include <fcntl.h>
#include <unistd.h>
#include <vector>

int main()
{
	int fd = open("data", O_RDONLY);
	unsigned sum = 0;
	auto at = [fd](auto place) {
		unsigned char c = 0;
		pread(fd, &c, 1, place);
		return int(c);
	};
	for (long n = 20; n > 0; n--)
		sum = sum * 3 + at(n * 9000);
	std::vector<long> places{500, 80000, 40000};
	std::for_each(places.begin(), places.end(), [&](auto &place) {
		unsigned char c = 0;
		pread(fd, &c, 1, place);
		sum += c;
	});
	// With several types.
	auto several = [fd](auto place) {
		unsigned char c = 0;
		pread(fd, &c, 1, place);
		return c;
	};
	sum += several(5) + several(7000L);
	printf("%u\n", sum);
	usleep(200000);
	return 0;
}
