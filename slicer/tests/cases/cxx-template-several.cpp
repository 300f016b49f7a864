// Functions that are made from one template have one text, which counts for all of them: both threads run them as they
// are.
//: STATUS load whole
//: WHY load counted: it is one of several that are made from a template
//: STATUS main sliced
//: KEEPS load<unsigned char>(fd, 30000)
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
