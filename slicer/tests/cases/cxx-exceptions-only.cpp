// A function that only throws: the program continues in the handler, with the values that its
// variables got before and meanwhile.
//: KEEPS leave();
//: KEEPS base = 40 * n;
//: KEEPS step = 7;
//: DATA data 40000
//: RUN
//: COUNTS
#include <cstdio>
#include <fcntl.h>
#include <unistd.h>

static void leave()
{
	throw 5;
}

int main()
{
	unsigned char c = 0;
	int fd = open("data", O_RDONLY), at = 0;
	for (int n = 0; n < 30; n++) {
		int base, step = 3;
		base = 40 * n;
		try {
			pread(fd, &c, 1, at);
			step = 7;
			if (n % 3)
				leave();
			step = 9;
			at += 100;
		} catch (int by) {
			at += by * 20 + base;
		}
		at += step;
	}
	printf("%d\n", at + c);
}
