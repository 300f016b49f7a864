// The result of an unknown external function decides where the program reads.
//: UNCHANGED
//: STATUS main refused
//: ARGS --unknown=refuse
//: WHY main mystery()
//: UNIT main.c
#include <fcntl.h>
#include <unistd.h>

long mystery(void);

int main(void)
{
	char c;
	int fd = open("data", O_RDONLY);
	pread(fd, &c, 1, mystery());
	return 0;
}
