// A main that is one try block: its handlers end the program, so an exception ends the prefetch thread.
//: STATUS get sliced
//: STATUS main sliced
//: KEEPS prefetch_exit(1)
//: DROPS catch
//: DATA a 50000
//: RUN a
//: RUN a none
//: COUNTS
#include <cstdio>
#include <fcntl.h>
#include <stdexcept>
#include <unistd.h>

static unsigned get(const char *path)
{
	int fd = open(path, O_RDONLY);
	if (fd < 0)
		throw std::runtime_error(path);
	unsigned char c = 0;
	unsigned sum = 0;
	for (int n = 10; n > 0; n--) {
		pread(fd, &c, 1, n * 4000);
		sum = sum * 3 + c;
	}
	close(fd);
	return sum;
}

int main(int argc, char **argv) try {
	unsigned sum = 0;
	for (int n = 1; n < argc; n++)
		sum += get(argv[n]);
	printf("%u\n", sum);
	usleep(200000);
	return 0;
} catch (const std::exception &e) {
	fprintf(stderr, "%s\n", e.what());
	usleep(200000);
	return 1;
}
