// A constructor that the C++ library runs: the library's call is kept, and the constructor counts for itself.
//: STATUS Table::Table whole
//: WHY Table::Table counted: it is a constructor
//: STATUS main sliced
//: KEEPS tables.emplace_back(fd, n);
//: KEEPS std::make_unique<Table>(fd, 9)
//: DATA data 200000
//: RUN
//: COUNTS
#include <cstdio>
#include <fcntl.h>
#include <memory>
#include <unistd.h>
#include <vector>

struct Table {
	int fd;
	unsigned char head[16];
	Table(int fd, int n) : fd(fd) { pread(fd, head, sizeof head, n * 20000L); }
};

int main()
{
	int fd = open("data", O_RDONLY);
	std::vector<Table> tables;
	unsigned sum = 0;
	for (int n = 0; n < 5; n++)
		tables.emplace_back(fd, n);
	auto last = std::make_unique<Table>(fd, 9);
	for (int n = 0; n < 16; n++) {
		unsigned char c = 0;
		pread(fd, &c, 1, tables[n % 5].head[n] * 500L);
		sum = sum * 3 + c + last->head[n];
	}
	printf("%u\n", sum);
	usleep(200000);
	return 0;
}
