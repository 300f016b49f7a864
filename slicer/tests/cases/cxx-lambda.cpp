// A lambda expression that decides where the program reads.
//: UNCHANGED
//: STATUS main refused
//: WHY main lambda
#include <fcntl.h>
#include <unistd.h>

int main()
{
	char c;
	int fd = open("data", O_RDONLY);
	auto place = [](int i) { return i * 100; };
	for (int i = 0; i < 50; i++)
		pread(fd, &c, 1, place(i));
	return 0;
}
