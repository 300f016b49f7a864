// The function of a std::async has a prefetch thread if it certainly runs in a thread of its own;
// the prefetch thread returns the result, too.
//: STATUS work sliced
//: STATUS Reader::run sliced
//: STATUS later refused
//: WHY later a function of the library calls it
//: STATUS main sliced
//: PROGRAM std::future<int> first = std::async(std::launch::async, foreread_async_body(work), fd, 3000L);
//: KEEPS std::future<int> first = std::async(std::launch::async, foreread_async_body(pf_work), fd, 3000L);
//: PROGRAM auto second = std::async(std::launch::async, foreread_async_body(&Reader::run), &reader, 40);
//: KEEPS foreread_async_body(pf_Reader_run), &reader, 40);
//: PROGRAM all.push_back(std::async(std::launch::async, foreread_async_body([fd, n] {
//: KEEPS prefetch_pread(fd, 1, place * 100);
//: KEEPS } catch (const std::runtime_error &error) {
//: KEEPS long place = first.get();
//: DATA data 200000
//: RUN
//: COUNTS
#include <cstdio>
#include <fcntl.h>
#include <future>
#include <stdexcept>
#include <string>
#include <thread>
#include <unistd.h>
#include <vector>

static int work(int fd, long step)
{
	int sum = 0;
	for (int n = 0; n < 40; n++) {
		unsigned char c = 0;
		pread(fd, &c, 1, n * step);
		sum += c;
	}
	return sum;
}

struct Reader {
	int fd;
	std::string run(int times)
	{
		std::string all;
		for (int n = times; n > 0; n--) {
			unsigned char c = 0;
			pread(fd, &c, 1, n * 4000);
			all += 'a' + c % 26;
		}
		return all;
	}
};

static int later(int fd, long at)
{
	unsigned char c = 0;
	pread(fd, &c, 1, at);
	return c;
}

static int fails(int fd, long at)
{
	unsigned char c = 0;
	pread(fd, &c, 1, at);
	if (c != 255)
		throw std::runtime_error("fails");
	return c;
}

int main()
{
	int fd = open("data", O_RDONLY);
	std::future<int> first = std::async(std::launch::async, work, fd, 3000L);
	Reader reader{fd};
	auto second = std::async(std::launch::async, &Reader::run, &reader, 40);
	std::vector<std::future<unsigned char>> all;
	for (int n = 0; n < 4; n++)
		all.push_back(std::async(std::launch::async, [fd, n] {
			unsigned char c = 0;
			for (int i = 0; i < 20; i++)
				pread(fd, &c, 1, i * 900 + n);
			return c;
		}));
	long place = first.get();
	unsigned char c = 0;
	pread(fd, &c, 1, place * 100);
	unsigned sum = c;
	for (auto &each : all)
		sum = sum * 3 + each.get();
	printf("%s\n", second.get().c_str());
	sum += std::async(later, fd, 700L).get() + std::async(std::launch::deferred, later, fd, 900L).get() + later(fd, 30);
	auto third = std::async(std::launch::async, fails, fd, 5000L);
	try {
		sum += third.get();
	} catch (const std::runtime_error &error) {
		printf("%s\n", error.what());
		pread(fd, &c, 1, 90000);
		sum += c;
	}
	printf("%u\n", sum);
	usleep(200000);
	return 0;
}
