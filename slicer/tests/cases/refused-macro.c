// A call in the middle of a macro's text: the function around it is left whole, and with it main.
//: UNCHANGED
//: STATUS main refused
//: WHY main stands in a macro
#include <fcntl.h>
#include <unistd.h>

#define LOOP(n) for (int i = 0; i < n; i++) { pread(fd, &c, 1, i); }

int main(void)
{
	unsigned char c = 0;
	int fd = open("data", O_RDONLY);
	LOOP(20)
	return c;
}
