// Calls through pointers with known targets: the prefetch version of the target is called.
//: KEEPS foreread_target == (__typeof__(foreread_target))forward ?
//: KEEPS foreread_target == (__typeof__(foreread_target))backward ?
//: DROPS pf_unrelated
//: STATUS unrelated whole
//: DATA data 4096
//: RUN
//: RUN back
//: COUNTS
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

typedef long walk(long at);

static long forward(long at) { return at + 5; }
static long backward(long at) { return at - 9; }
static void unrelated(unsigned char c) { printf("%d\n", c); }

struct way { const char *name; walk *step; void (*use)(unsigned char); };
static const struct way ways[] = { { "forward", forward, unrelated }, { "backward", backward, unrelated } };

int main(int argc, char **argv)
{
	const struct way *way = &ways[argc > 1];
	unsigned char c = 0;
	int fd = open("data", O_RDONLY);
	long at = 2000;
	for (int i = 0; i < 100; i++) {
		pread(fd, &c, 1, at);
		at = way->step(at);
		way->use(c);
	}
	usleep(200000);
	return 0;
}
