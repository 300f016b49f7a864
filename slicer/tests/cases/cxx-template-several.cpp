// Instantiations of one template share one text, which counts for all of them: each is sliced
// separately, and only the one whose data is used really reads.
//: STATUS load sliced
//: STATUS main sliced
//: KEEPS pf_load(fd, 30000);
//: KEEPS long link = pf_load_2(fd, 20000);
//: KEEPS pf_Table_unsigned_char__4096__get(&narrow, n);
//: KEEPS fetch_pread(fd, &value, sizeof value, at);
//: KEEPS prefetch_pread(fd, sizeof value, at);
//: DATA data 200000
//: RUN
//: COUNTS
#include <cstdio>
#include <fcntl.h>
#include <unistd.h>

template <typename T> static T load(int fd, long at)
{
	T value = 0;
	pread(fd, &value, sizeof value, at);
	return value;
}

template <typename T, int Step> class Table {
public:
	Table(int fd, long base) : fd(fd), base(base) {}
	T get(int n) const
	{
		T value = 0;
		pread(fd, &value, sizeof value, base + n * Step);
		return value;
	}

private:
	int fd;
	long base;
};

int main()
{
	int fd = open("data", O_RDONLY);
	unsigned sum = load<unsigned char>(fd, 30000);
	long link = load<unsigned short>(fd, 20000);
	Table<unsigned char, 4096> narrow(fd, link);
	Table<unsigned short, 8192> wide(fd, 0);
	for (int n = 0; n < 20; n++) {
		unsigned char c = 0;
		pread(fd, &c, 1, n * 5000);
		sum = sum * 3 + narrow.get(n) + wide.get(n % 7) + c;
	}
	sum += load<unsigned char>(fd, link * 2);
	printf("%u\n", sum);
	usleep(200000);
	return 0;
}
