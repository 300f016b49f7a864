// The target of a std::function is called wherever one of its signature is called, in any unit:
// lambda expressions that read are sliced where they are created.
//: STATUS main sliced
//: STATUS times pure
//: STATUS other pure
//: KEEPS std::function<void (int)> kept =
//: KEEPS prefetch_pread(fd, 1, n * 500)
//: KEEPS int fd = prefetch_open("data", O_RDONLY);
//: KEEPS prefetch_pread(fd, 1, at + 7000)
//: KEEPS fetch_pread(fd, &c, 1, n * 9000)
//: DATA data 200000
//: RUN
//: COUNTS
#include <cstdio>
#include <fcntl.h>
#include <functional>
#include <unistd.h>
#include <vector>

struct Job {
	std::function<int(const char *)> opener;
	int opened = 0;
};

int other(int n, const std::function<int(int)> &body);

static int times(int n, const std::function<int(int)> &body)
{
	int sum = 0;
	for (int i = 0; i < n; i++)
		sum += body(i);
	return sum;
}

int main()
{
	Job job;
	job.opener = [](const char *what) {
		int fd = open("data", O_RDONLY);
		return what[0] == 'd' ? fd : -1;
	};
	int fd = job.opener("data");
	unsigned sum = 0;
	std::function<void(int)> kept = [&](int n) {
		unsigned char c = 0;
		pread(fd, &c, 1, n * 500);
		sum += c;
	};
	for (int n = 0; n < 10; n++)
		kept(n);
	auto look = [fd](int n) {
		unsigned char c = 0;
		pread(fd, &c, 1, n * 9000);
		return c + 1;
	};
	int place = times(7, look) + other(4, look);
	unsigned char d = 0;
	pread(fd, &d, 1, place);
	std::vector<std::function<void(long)>> all;
	all.push_back([&](long at) { pread(fd, &d, 1, at); });
	all.emplace_back([&](long at) { pread(fd, &d, 1, at + 7000); });
	for (int n = 0; n < 10; n++)
		for (auto &each : all)
			each(n * 1000);
	printf("%u %d\n", sum, d);
	usleep(200000);
	return 0;
}
//: UNIT other.cpp
#include <functional>

int other(int n, const std::function<int(int)> &body)
{
	return n > 0 ? body(n) + other(n - 1, body) : 0;
}
