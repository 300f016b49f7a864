// Assembler that computes an offset.
//: UNCHANGED
//: STATUS main refused
//: WHY main assembler
#include <fcntl.h>
#include <unistd.h>

int main(void)
{
	char c;
	long at = 5;
	int fd = open("data", O_RDONLY);
	__asm__("incq %0" : "+r"(at));
	pread(fd, &c, 1, at);
	return 0;
}
