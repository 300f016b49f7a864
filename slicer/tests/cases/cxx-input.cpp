// Standard input as a stream of the C++ library: its data cannot be sent.
//: UNCHANGED
//: STATUS main refused
//: WHY main a stream of the C++ library
#include <fcntl.h>
#include <iostream>
#include <unistd.h>

int main()
{
	char c;
	long at;
	int fd = open("data", O_RDONLY);
	while (std::cin >> at)
		pread(fd, &c, 1, at);
	return 0;
}
