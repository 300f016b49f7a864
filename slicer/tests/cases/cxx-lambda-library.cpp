// A lambda expression that reads, passed to functions of the C++ library and of the program: it is
// sliced where it is created, and the calls that run it are kept.
//: STATUS main sliced
//: KEEPS std::for_each(places.begin(), places.end(),
//: KEEPS prefetch_pread(fd, 1, place)
//: KEEPS prefetch_pread(fd, 1, n * 500)
//: STATUS times whole
//: DATA data 200000
//: RUN
//: COUNTS
#include <algorithm>
#include <cstdio>
#include <fcntl.h>
#include <functional>
#include <unistd.h>
#include <vector>

template <typename Body> static void times(int n, Body body)
{
	for (int i = 0; i < n; i++)
		body(i);
}

int main()
{
	int fd = open("data", O_RDONLY);
	unsigned sum = 0;
	std::vector<long> places;
	for (int n = 0; n < 20; n++)
		places.push_back(n * 7001 % 190000);
	std::for_each(places.begin(), places.end(), [&](long place) {
		unsigned char c = 0;
		pread(fd, &c, 1, place);
		sum = sum * 3 + c;
	});
	times(10, [&sum, fd](int n) {
		unsigned char c = 0;
		pread(fd, &c, 1, n * 9000);
		sum += c;
	});
	std::function<void(int)> kept = [&](int n) {
		unsigned char c = 0;
		pread(fd, &c, 1, n * 500);
		sum += c;
	};
	kept(3);
	printf("%u\n", sum);
	usleep(200000);
	return 0;
}
