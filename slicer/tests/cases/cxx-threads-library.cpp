// Threads of the C++ library that read have a prefetch thread each: with a function, a member
// function, a lambda expression; as variables, in arrays and in containers.
//: STATUS work sliced
//: STATUS Reader::run sliced
//: STATUS main sliced
//: PROGRAM std::thread first(foreread_body(work), fd, 3000L, &sums[0]);
//: KEEPS std::thread first(foreread_body(pf_work), fd, 3000L, &sums[0]);
//: PROGRAM std::thread second(foreread_body(&Reader::run), &reader, 40);
//: PROGRAM all.emplace_back(foreread_body(each), n)
//: PROGRAM all.push_back(std::thread(foreread_body([&, n] {
//: KEEPS prefetch_pread(fd, 1, n * step);
//: KEEPS prefetch_pread(fd, 1, (i * n * 771) % 200000);
//: DROPS *sum =
//: DROPS sums[n] += c
//: KEEPS first.join();
//: KEEPS for (std::thread &one : all) { one.join(); }
//: DATA data 200000
//: RUN
//: COUNTS
#include <cstdio>
#include <fcntl.h>
#include <thread>
#include <unistd.h>
#include <vector>

static void work(int fd, long step, unsigned *sum)
{
	for (int n = 0; n < 40; n++) {
		unsigned char c = 0;
		pread(fd, &c, 1, n * step);
		*sum = *sum * 3 + c;
	}
}

struct Reader {
	int fd;
	unsigned sum = 0;
	void run(int times)
	{
		for (int n = times; n > 0; n--) {
			unsigned char c = 0;
			pread(fd, &c, 1, n * 4000);
			sum = sum * 3 + c;
		}
	}
};

int main()
{
	int fd = open("data", O_RDONLY);
	unsigned sums[10] = {0};
	std::thread first(work, fd, 3000L, &sums[0]);
	Reader reader{fd};
	std::thread second(&Reader::run, &reader, 40);
	std::vector<std::thread> all;
	all.reserve(8);
	auto each = [&](int number) { work(fd, 100 * number, &sums[number]); };
	for (int n = 2; n < 5; n++)
		all.emplace_back(each, n);
	for (int n = 5; n < 7; n++)
		all.push_back(std::thread([&, n] {
			for (int i = 0; i < 20; i++) {
				unsigned char c = 0;
				pread(fd, &c, 1, (i * n * 771) % 200000);
				sums[n] += c;
			}
		}));
	std::thread some[2];
	for (int n = 0; n < 2; n++)
		some[n] = std::thread(work, fd, 200 + n, &sums[7 + n]);
	for (auto &one : some)
		one.join();
	for (auto &one : all)
		one.join();
	first.join();
	second.join();
	unsigned sum = reader.sum;
	for (unsigned one : sums)
		sum = sum * 5 + one;
	printf("%u\n", sum);
	usleep(200000);
	return 0;
}
