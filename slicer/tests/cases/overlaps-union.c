// The members of a union are the same bytes, through whichever structure they are accessed.
//: KEEPS step(&u);
//: KEEPS s.whole += 300;
//: DATA data 65536
//: RUN
//: COUNTS
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

union either {
	struct { long kind, at; } short_one;
	struct { long kind, at; char text[16]; } long_one;
	long raw[4];
};

struct tagged {
	union {
		struct { unsigned low : 8, high : 8; };
		unsigned whole;
	};
};

static void step(union either *u)
{
	u->long_one.at += 3;
	u->raw[1] ^= 4;
}

int main(void)
{
	char buf[64];
	union either u = { .short_one = { 1, 5 } };
	struct tagged s = { .whole = 0 };
	int fd = open("data", O_RDONLY);
	for (int i = 0; i < 40; i++) {
		step(&u);
		pread(fd, buf, sizeof buf, u.short_one.at % 200 * 64);
		s.whole += 300;
		pread(fd, buf, 1, s.high * 64 + s.low);
	}
	printf("%ld %u\n", u.short_one.at, s.whole);
	return 0;
}
