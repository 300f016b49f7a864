// What is made from a template runs as it is, and takes nothing else with it, nor does what its class alone may know.
//: STATUS scaled refused
//: WHY scaled template
//: STATUS main sliced
//: STATUS Walk::step refused
//: WHY Walk::step private
//: KEEPS prefetch_pread(fd, 1, scaled(i))
//: DATA data 70000
//: RUN
//: COUNTS
#include <cstdio>
#include <fcntl.h>
#include <unistd.h>

template <class T> T scaled(T n) { return n * 13 % 4000; }

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
	for (int i = 0; i < 50; i++) {
		pread(fd, &c, 1, scaled(i));
		sum = sum * 3 + c;
		pread(fd, &c, 1, walk.next());
		sum = sum * 3 + c;
	}
	printf("%u\n", sum);
	usleep(200000);
	return 0;
}
