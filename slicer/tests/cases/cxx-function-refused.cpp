// What calls a std::function must be known: not a thread, nor std::async, nor a function that is in no unit.
//: STATUS main sliced
//: STATUS operator() refused
//: WHY operator() a function of the library calls it
//: DROPS 17000
//: DROPS 500
//: DROPS outside
//: DATA data 200000
//: RUN
//: COUNTS
#include <cstdio>
#include <fcntl.h>
#include <functional>
#include <future>
#include <thread>
#include <unistd.h>

__attribute__((weak)) void outside(const std::function<long(long)> &body);

int main()
{
	int fd = open("data", O_RDONLY);
	unsigned sum = 0;
	unsigned char d = 0;
	for (int n = 0; n < 5; n++) {
		pread(fd, &d, 1, n * 7000);
		sum = sum * 3 + d;
	}
	std::function<void()> task = [&] { pread(fd, &d, 1, 17000); };
	std::thread one(task);
	one.join();
	auto later = std::async(std::launch::async, [&] {
		unsigned char c = 0;
		pread(fd, &c, 1, 500);
		return c;
	});
	sum += later.get() + d;
	std::function<long(long)> given = [&](long at) {
		pread(fd, &d, 1, at);
		return at + d;
	};
	if (outside)
		outside(given);
	sum += given(70000);
	printf("%u\n", sum);
	usleep(200000);
	return 0;
}
