// A va_list that is passed on, and one that is copied.
//: STATUS each sliced
//: KEEPS each(int fd, const char *kinds, va_list list)
//: DATA data 200000
//: RUN
//: COUNTS
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

static unsigned each(int fd, const char *kinds, va_list list)
{
	unsigned sum = 0;
	for (; *kinds; kinds++) {
		long at = *kinds == 'l' ? va_arg(list, long) : va_arg(list, int);
		unsigned char c = 0;
		pread(fd, &c, 1, at);
		sum += c;
	}
	return sum;
}

static unsigned twice(int fd, const char *kinds, ...)
{
	va_list list, again;
	va_start(list, kinds);
	va_copy(again, list);
	unsigned sum = each(fd, kinds, list) + each(fd, kinds, again);
	va_end(again);
	va_end(list);
	return sum;
}

int main(void)
{
	int fd = open("data", O_RDONLY);
	unsigned sum = 0;
	for (int i = 0; i < 20; i++)
		sum += twice(fd, "lil", 5L * i, i * 4096, 190000L - i);
	printf("%u\n", sum);
	usleep(200000);
	return 0;
}
