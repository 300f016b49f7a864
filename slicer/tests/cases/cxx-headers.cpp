// Functions of a header that several units include: the linker takes each from any unit, so their
// text is the same in all. They are sliced once.
//: STATUS File::get sliced
//: STATUS File::next sliced
//: STATUS first sliced
//: STATUS load sliced
//: STATUS main sliced
//: STATUS other sliced
//: DATA data 200000
//: RUN
//: COUNTS
#include <cstdio>
#include <fcntl.h>

#include "file.h"

int main()
{
	File file(open("data", O_RDONLY));
	unsigned sum = first(file);
	for (int n = 0; n < 20; n++)
		sum = sum * 3 + file.get(n * 4000) + load<unsigned char>(file, n * 5000) + other(file, n);
	printf("%u %d\n", sum, file.lines);
	usleep(200000);
	return 0;
}
//: UNIT other.cpp
#include "more.h"
#include "file.h"

int other(File &file, int n)
{
	return file.get(n * 7000) + file.next() + load<unsigned short>(file, n * 300) + load<unsigned char>(file, n);
}
//: UNIT more.h
#pragma once
#include "file.h"
//: UNIT file.h
#pragma once
#include <unistd.h>

class File {
public:
	explicit File(int fd) : fd(fd) {}
	int get(long at) const
	{
		unsigned char c = 0;
		pread(fd, &c, 1, at);
		return c;
	}
	int next();
	int lines = __LINE__;

private:
	friend int first(File &);
	template <typename T> friend T load(File &, long);
	int fd;
};

inline int File::next()
{
	unsigned char c[16] = {0};
	return read(fd, c, 16) == 16 ? c[3] : 0;
}

inline int first(File &file)
{
	lseek(file.fd, 100000, SEEK_SET);
	return file.next();
}

template <typename T> T load(File &file, long at)
{
	T value = 0;
	pread(file.fd, &value, sizeof value, at);
	return value;
}

int other(File &file, int n);
