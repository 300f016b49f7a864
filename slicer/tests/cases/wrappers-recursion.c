// Two functions that pass flags to each other and add some: the file may be created.
//: STATUS opens sliced
//: KEEPS FOREREAD_WAIT
//: DATA data 200000
//: RUN data
//: COUNTS
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

static int more(const char *path, int flags, int n);

static int opens(const char *path, int flags, int n)
{
	return n > 0 ? more(path, flags, n) : open(path, flags | O_NOCTTY);
}

static int more(const char *path, int flags, int n)
{
	return opens(path, flags | O_CLOEXEC, n - 1);
}

int main(int argc, char **argv)
{
	unsigned char c = 0;
	unsigned sum = 0;
	int fd = opens(argv[1], O_RDONLY, argc);
	for (int n = 20; n-- > 0;) {
		pread(fd, &c, 1, n * 9000L);
		sum = sum * 3 + c;
	}
	printf("%u\n", sum);
	usleep(200000);
	return 0;
}
