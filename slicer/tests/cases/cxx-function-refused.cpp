// Callers of a std::function must be known: no thread, nothing that std::async may run later, no function outside all units.
// A destructor's time is unknown, too; and functions that the library calls unchanged must do the same in both threads.
//: STATUS main sliced
//: STATUS operator() refused
//: WHY operator() a function of the library calls it
//: DROPS 17000
//: DROPS 500
//: DROPS outside
//: STATUS end refused
//: WHY end a function of the library calls it
//: STATUS asks refused
//: WHY asks a function of the library calls it
//: STATUS waits refused
//: WHY waits a function of the library calls it
//: DATA data 200000
//: INPUT 5 6\n
//: RUN
//: COUNTS
#include <cstdio>
#include <fcntl.h>
#include <functional>
#include <future>
#include <memory>
#include <thread>
#include <unistd.h>

__attribute__((weak)) void outside(const std::function<long(long)> &body);

static int fd;

static void end(int *one)
{
	unsigned char c = 0;
	pread(fd, &c, 1, *one * 3000);
	*one = c;
}

static int asks(int at)
{
	unsigned char c = 0;
	char digit[2] = {0};
	if (fread(digit, 1, 2, stdin) == 2)
		pread(fd, &c, 1, at + (digit[0] - '0') * 1000);
	return c;
}

static int (*const asking)(int) = asks;

static short waits(short at)
{
	unsigned char c = 0;
	if (getchar() == '6')
		pread(fd, &c, 1, at);
	return c;
}

struct Defaults {
	std::function<short(short)> with = waits;
};

int main()
{
	fd = open("data", O_RDONLY);
	unsigned sum = 0;
	unsigned char d = 0;
	for (int n = 0; n < 5; n++) {
		pread(fd, &d, 1, n * 7000);
		sum = sum * 3 + d;
	}
	std::function<void()> task = [&] { pread(fd, &d, 1, 17000); };
	std::thread one(task);
	one.join();
	auto later = std::async([&] {
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
	int number = 7;
	{
		std::unique_ptr<int, void (*)(int *)> one(&number, end);
	}
	end(&number);
	std::function<int(int)> held = asking;
	Defaults defaults{};
	sum += number + defaults.with(30) + held(9) + asks(30);
	printf("%u\n", sum);
	usleep(200000);
	return 0;
}
