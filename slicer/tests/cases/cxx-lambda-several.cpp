// A generic lambda expression that is called with arguments of several types stands for all its
// instantiations: each is sliced, and the types of its arguments select one.
//: STATUS main sliced
//: KEEPS auto several = prefetch_overloads([fd, base](int place, long unneeded) -> unsigned char
//: KEEPS several((int)(5), (long)(0));
//: KEEPS [&](unsigned char &part) -> void
//: KEEPS std::visit(prefetch_overloads([&](int at) -> void
//: KEEPS look(c, (int)(n * 700)) + look(s, (int)(n * 900)) + look(7L, (int)(n));
//: STATUS counting sliced
//: STATUS mutating whole
//: DATA data 200000
//: CFLAGS -std=c++17
//: RUN
//: COUNTS
#include <algorithm>
#include <cstdio>
#include <fcntl.h>
#include <tuple>
#include <unistd.h>
#include <variant>
#include <vector>

template <typename F, typename... T> static void all(F of, T &...each) { (of(each), ...); }

// Each instantiation would have its own copy of the captured values that change: left whole, with the function around it.
static int mutating(int fd)
{
	int n = 0;
	auto next = [fd, n](auto step) mutable {
		unsigned char c = 0;
		n += step;
		pread(fd, &c, 1, n * 1000);
		return c;
	};
	return next(3) + next(5L);
}

static int counting(int fd)
{
	int n = 0;
	auto next = [fd, &n](auto step) {
		unsigned char c = 0;
		n += step;
		pread(fd, &c, 1, n * 1000);
		return c;
	};
	next(3);
	next(5L);
	return n;
}

int main()
{
	int fd = open("data", O_RDONLY);
	unsigned sum = 0;
	long base = 100;
	auto several = [fd, base](auto place, long unneeded) {
		unsigned char c = 0;
		pread(fd, &c, 1, base + place);
		return (unsigned char)(c + unneeded);
	};
	sum += mutating(fd) + counting(fd);
	sum += several(5, 3) + several(7000L, 4) + several(short(600), 2);
	// By reference: the type selects the instantiation, and says whether the argument may be changed.
	auto look = [&](const auto &what, int at) {
		decltype(what + 0) value = 0;
		pread(fd, &value, sizeof value, at + what);
		sum = sum * 3 + (value & 255);
		return value & 127;
	};
	unsigned char c = 3;
	unsigned short s = 5;
	for (int n = 0; n < 10; n++) {
		long next = look(c, n * 700) + look(s, n * 900) + look(7L, n);
		pread(fd, &c, 1, next * 100);
	}
	std::variant<int, long> either = 30000L;
	std::visit([&](auto at) {
		pread(fd, &c, 1, at);
		sum += c;
	}, either);
	unsigned char narrow = 9;
	unsigned wide = 70000;
	all([&](auto &part) {
		pread(fd, &part, 1, part);
		sum += part;
	}, narrow, wide);
	printf("%u\n", sum);
	usleep(200000);
	return 0;
}
