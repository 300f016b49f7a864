// A variadic function is translated like any other.
//: STATUS at sliced
//: KEEPS __builtin_va_arg(list, int)
//: DATA data 8192
//: RUN
//: COUNTS
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

static long at(int n, ...)
{
	long sum = 0;
	va_list list;
	va_start(list, n);
	while (n-- > 0)
		sum += va_arg(list, int);
	va_end(list);
	return sum;
}

static void path(char *into, size_t n, const char *format, ...)
{
	va_list list;
	va_start(list, format);
	vsnprintf(into, n, format, list);
	va_end(list);
}

int main(void)
{
	unsigned char c = 0;
	char name[32], *which = "data";
	path(name, sizeof name, "./%s", which);
	int fd = open(name, O_RDONLY);
	for (int i = 0; i < 40; i++) {
		pread(fd, &c, 1, at(3, i, i * 2, 1000));
		printf("%d ", c);
	}
	usleep(200000);
	return 0;
}
