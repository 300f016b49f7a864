// Instantiations are sliced as if they were written out, or run unchanged if they only compute; a
// private name of the class leaves nothing else whole.
//: STATUS scaled pure
//: STATUS look sliced
//: STATUS Blocks<char>::read sliced
//: STATUS main sliced
//: STATUS Walk::step sliced
//: KEEPS unsigned char pf_look(int fd, long at)
//: KEEPS prefetch_pread(fd, sizeof(unsigned char), at * 2)
//: KEEPS prefetch_pread((self->*foreread_private(
//: KEEPS pf_look(fd, scaled(i))
//: DATA data 70000
//: RUN
//: COUNTS
#include <cstdio>
#include <fcntl.h>
#include <unistd.h>

template <class T> T scaled(T n) { return n * 13 % 4000; }

template <class T> T look(int fd, long at)
{
	T value = 0;
	pread(fd, &value, sizeof(T), at * 2);
	return value;
}

template <class T> class Blocks {
	int fd;
	enum { Size = 64 };
	T block[Size];

public:
	explicit Blocks(int fd) : fd(fd), block() {}
	T read(int number)
	{
		if (pread(fd, block, Size * sizeof(T), number * Size) < Size)
			return 0;
		return block[Size / 2];
	}
};

class Walk {
	enum Mode { Up, Down };
	Mode mode = Up;
	long at = 0;
	long step(Mode next) { mode = next; return mode == Up ? 3 : -2; }

public:
	long next() { return at += step(mode == Up ? Down : Up) + 10; }
};

int main()
{
	unsigned char c = 0;
	unsigned sum = 0;
	Walk walk;
	int fd = open("data", O_RDONLY);
	Blocks<char> blocks(fd);
	for (int i = 0; i < 50; i++) {
		sum = sum * 3 + look<unsigned char>(fd, scaled(i));
		pread(fd, &c, 1, walk.next() + scaled(2L * i));
		sum = sum * 3 + c + blocks.read(i);
	}
	printf("%u\n", sum);
	usleep(200000);
	return 0;
}
