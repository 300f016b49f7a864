// Calls in macros that check or print their arguments are counted where the macro begins, if they
// are made exactly once there. The macro's text after them may leave.
//: STATUS main sliced
//: PROGRAM foreread_ahead(); READ(fd, i * 7)
//: PROGRAM foreread_ahead(); CHECK(pread(fd, &c, 1, i * 11) == 1)
//: PROGRAM sum += (foreread_ahead(), BYTE(i * 13))
//: PROGRAM (foreread_ahead(), (foreread_ahead(), TWICE(i)))
//: PROGRAM { MAYBE(i * 23)
//: KEEPS prefetch_pread(fd, 1, i * 7)
//: KEEPS prefetch_pread(fd, 1, i * 11)
//: KEEPS prefetch_pread(fd, 1, i * 13)
//: KEEPS pread(fd, &c, 1, i * 23)
//: DATA data 4096
//: RUN
//: COUNTS
#include <assert.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#define READ(fd, place) do { if (pread(fd, &c, 1, place) != 1) return 1; sum += c; } while (0)
#define CHECK(what) if (!(what)) { puts(#what); return 2; }
#define BYTE(place) (pread(fd, &c, 1, place) == 1 ? c : -1)
#define TWICE(i) (pread(fd, &c, 1, i * 17) + pread(fd, &c, 1, i * 19))
#define MAYBE(place) if (i & 1) pread(fd, &c, 1, place)

int main(void)
{
	unsigned char c = 0;
	unsigned sum = 0;
	int fd = open("data", O_RDONLY);
	for (int i = 0; i < 50; i++) {
		READ(fd, i * 7);
		CHECK(pread(fd, &c, 1, i * 11) == 1)
		sum += BYTE(i * 13);
		sum = sum * 3 + c + TWICE(i);
	}
	for (int i = 0; i < 50; i++) { MAYBE(i * 23);
		assert(pread(fd, &c, 1, i * 29) == 1);
	}
	printf("%u\n", sum);
	usleep(200000);
	return 0;
}
