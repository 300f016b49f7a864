// A lambda expression in a member function captures the object: the parameter self. A captured copy
// keeps its value from call to call. An index that is changed by reference may have any value.
//: KEEPS [self]
//: KEEPS mutable -> void
//: KEEPS self->step
//: KEEPS places[0] = 300
//: STATUS Film::play sliced
//: DATA data 70000
//: RUN
//: COUNTS
#include <cstdio>
#include <fcntl.h>
#include <unistd.h>

struct Film {
	int fd, step;
	unsigned sum;

	void play(int frames);
};

void Film::play(int frames)
{
	int places[4] = {0, 0, 0, 0}, last = 0;
	int next = 10;
	auto show = [this]() {
		unsigned char c = 0;
		read(fd, &c, 1);
		sum = sum * 3 + c;
	};
	auto skip = [this, next]() mutable {
		next += step;
		lseek(fd, next, SEEK_SET);
	};
	auto jump = [&](int by) { last += by; };
	for (int i = 0; i < frames; i++) {
		skip();
		show();
	}
	for (last = 0; last < 1; last++) {
		places[last] = 100;
		jump(2);
	}
	places[0] = 300;
	for (last = 0; last < 2; last++) {
		jump(1);
		places[last] += 40;
	}
	for (int i = 0; i < 40; i++) {
		lseek(fd, places[1] + places[0] * i, SEEK_SET);
		show();
	}
}

int main()
{
	Film film = {open("data", O_RDONLY), 900, 0};
	film.play(30);
	printf("%u\n", film.sum);
	usleep(200000);
	return 0;
}
