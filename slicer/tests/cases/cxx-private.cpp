// What is private to a class can be named where access is not checked: types, functions that are left whole, members that
// have no address of their own.
//: STATUS Index::Index whole
//: STATUS Index::entry sliced
//: STATUS Index::sum sliced
//: STATUS main sliced
//: KEEPS -fno-access-control
//: KEEPS Index::Entry pf_Index_entry(const Index *self, int n)
//: DATA data 200000
//: RUN
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
	unsigned sum() const
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
	Entry entry(int n) const
	{
		Entry found = entries[n];
		asked += 10;
		found.at += step + asked;
		return found;
	}
	static int twice(int n)
	{
		return 2 * n;
	}
	mutable long asked = 0;
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

int main()
{
	int fd = open("data", O_RDONLY);
	Index index(fd);
	printf("%u\n", index.sum());
	usleep(200000);
	return 0;
}
