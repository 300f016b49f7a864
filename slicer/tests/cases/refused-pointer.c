// A call through a pointer of unknown origin.
//: UNCHANGED
//: STATUS main refused
//: WHY main pointer
#include <dlfcn.h>
#include <fcntl.h>
#include <unistd.h>

int main(void)
{
	char c;
	int fd = open("data", O_RDONLY);
	long (*where)(void) = (long (*)(void))dlsym(0, "where");
	pread(fd, &c, 1, where());
	return 0;
}
