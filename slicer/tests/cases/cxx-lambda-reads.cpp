// A lambda expression that is passed on and changes a variable, or reads, may be called by anyone:
// if it is needed, the function around it is left whole.
//: UNCHANGED
//: STATUS main refused
//: WHY main lambda expression that is left whole
#include <fcntl.h>
#include <unistd.h>

int main()
{
	char c;
	int at = 0, fd = open("data", O_RDONLY);
	const auto &place = [&](int by) { return at += by; };
	for (int i = 0; i < 50; i++)
		pread(fd, &c, 1, place(i));
	return 0;
}
