// vfscanf() reads like fscanf(); its destinations are in the list.
//: KEEPS fetch_vfscanf(f, format, list)
//: TEXT text 1 10 2 20 3 30 4 40 5 50 6 60 7 70 8 80 9 90
//: DATA data 65536
//: RUN
//: COUNTS
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

static int scan(FILE *f, const char *format, ...)
{
	va_list list;
	va_start(list, format);
	int n = vfscanf(f, format, list);
	va_end(list);
	return n;
}

int main(void)
{
	FILE *f = fopen("text", "r");
	int fd = open("data", O_RDONLY), x, y, sum = 0;
	unsigned char c;
	while (scan(f, "%d %d", &x, &y) == 2) {
		pread(fd, &c, 1, x * y);
		sum += c;
		if (x % 3 == 0)
			fseek(f, 5, SEEK_CUR);
	}
	printf("%d\n", sum);
	usleep(200000);
	return 0;
}
