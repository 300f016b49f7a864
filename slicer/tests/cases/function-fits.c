// Functions called through a union or a cast with other arguments than their own, like those of an obstack.
//: KEEPS place((size_t)(self))
//: KEEPS extra(self, n)
//: STATUS next sliced
//: DATA data 65536
//: RUN
//: RUN extra
//: COUNTS
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct walk {
	union { long (*plain)(size_t); long (*extra)(void *, size_t); } get;
	void *self;
	int extra;
};

static long place(size_t n) { return n * 3000L; }
static long extra(void *self, size_t n) { return n * 3000L + (long)(size_t)self; }
static long half(double n) { return n > 3 ? 100 : 200; }
static void nothing(void *self) { (void)self; }

static long next(struct walk *w, void *self, size_t n)
{
	return w->extra ? w->get.extra(self, n) : w->get.plain(n);
}

int main(int argc, char **argv)
{
	struct walk w = {.get.plain = place};
	unsigned char c = 0;
	unsigned sum = 0;
	int fd = open("data", O_RDONLY);
	if (argc > 5)
		w.get.plain = (long (*)(size_t))nothing;
	if (argc > 6)
		w.get.extra = (long (*)(void *, size_t))half;
	if (argc > 1) {
		w.get.extra = extra;
		w.extra = 1;
	}
	for (size_t n = 0; n < 20; n++) {
		pread(fd, &c, 1, next(&w, (void *)4096, n));
		sum = sum * 3 + c;
	}
	printf("%u\n", sum);
	usleep(200000);
	return 0;
}
