// A built-in function of the translator's compiler that the program's compiler may lack: the program tests for it.
//: STATUS turn sliced
//: DATA data 65536
//: RUN
//: COUNTS
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

#ifndef __has_builtin
#define __has_builtin(x) 0
#endif
#if __has_builtin(__builtin_rotateleft32)
#define ROTATE(x, n) __builtin_rotateleft32(x, n)
#define BACK(x, n) __builtin_rotateright16(x, n)
#define ASSUME(x) __builtin_assume(x)
#else
#define ROTATE(x, n) ((uint32_t)((x) << (n) | (x) >> (32 - (n))))
#define BACK(x, n) ((uint16_t)((x) >> (n) | (x) << (16 - (n))))
#define ASSUME(x) (void)0
#endif

static uint32_t turn(uint32_t seed)
{
	ASSUME(seed != 1);
	seed = ROTATE(seed, 7) * 5 + 12345;
	return seed ^ BACK((uint16_t)seed, 3);
}

int main(void)
{
	unsigned char c = 0;
	unsigned sum = 0;
	int fd = open("data", O_RDONLY);
	uint32_t at = 99;
	for (int n = 0; n < 30; n++) {
		at = turn(at);
		sum = sum * 3 + (pread(fd, &c, 1, at % 65536) == 1 ? c : 0);
		/* Both threads get the same result. */
		if (at % 5 == 0)
			pread(fd, &c, 1, 7);
	}
	printf("%u\n", sum);
	usleep(200000);
	return 0;
}
