// Private names of a class that need a compiler without access checks: types, functions that are
// left whole, members without an address of their own.
//: STATUS Index::Index whole
//: STATUS Index::entry sliced
//: STATUS Index::sum sliced
//: STATUS main sliced
//: KEEPS -fno-access-control
//: KEEPS Index::Entry pf_Index_entry(Index *self, int n)
//: DATA data 200000
//: RUN here
//: COUNTS
#include <cstdio>
#include <fcntl.h>
#include <unistd.h>
#include <vector>

class Index {
public:
	explicit Index(const int &fd) : fd(fd), step(4), wide(1)
	{
		for (int n = 0; n < 20; n++)
			entries.push_back(Entry{place(n), n});
	}
	unsigned sum()
	{
		unsigned all = 0;
		for (int n = 19; n >= 0; n--) {
			Entry here = entry(n);
			unsigned char c = 0;
			pread(fd, &c, 1, here.at + wide + twice(n));
			all = all * 3 + c;
		}
		return all;
	}

private:
	struct Entry {
		long at;
		int number;
	};
	Entry entry(int n)
	{
		Entry found = entries[n];
		asked += when == First ? 10 : Steps[1];
		when = Later;
		found.at += step + asked;
		return found;
	}
	static int twice(int n)
	{
		return 2 * n;
	}
	mutable long asked = 0;
	enum { First, Later } when = First;
	static const long Steps[2];
	long place(int n) const
	{
		unsigned char c = 0;
		pread(fd, &c, 1, n * 5000);
		return c * 700L;
	}
	const int &fd;
	unsigned step : 4;
	unsigned wide : 2;
	std::vector<Entry> entries;
};

const long Index::Steps[2] = {1, 2};

namespace data {
typedef unsigned short U16;
class Table {
	U16 places[8];

public:
	explicit Table(U16 step)
	{
		for (int n = 0; n < 8; n++)
			places[n] = n * step;
	}
	long get(int n) const
	{
		U16 found[2] = {places[n], 1};
		return found[0] + found[1];
	}
};
} // namespace data

int main(int, const char **arguments)
{
	int fd = open(arguments[1] ? "data" : "none", O_RDONLY);
	data::Table table(3000);
	for (int n = 0; n < 8; n++) {
		unsigned char c = 0;
		pread(fd, &c, 1, table.get(n));
		table = data::Table(c + 2000);
	}
	Index index(fd);
	printf("%u\n", index.sum());
	usleep(200000);
	return 0;
}
