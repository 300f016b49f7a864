// --pure declares that an external function only computes.
//: ARGS --pure mystery
//: KEEPS prefetch_pread(fd, 1, mystery(5))
#include <fcntl.h>
#include <unistd.h>

long mystery(long n);

int main(void)
{
	char c;
	int fd = open("data", O_RDONLY);
	pread(fd, &c, 1, mystery(5));
	return 0;
}
