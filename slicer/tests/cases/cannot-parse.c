// A unit that cannot be parsed is left whole, with the reason; the others are translated.
//: STATUS main sliced
//: KEEPS prefetch_read(fd, 10)
//: UNIT main.c
#include <fcntl.h>
#include <unistd.h>

void other(void);

int main(void)
{
	char block[10];
	int fd = open("data", O_RDONLY);
	read(fd, block, 10);
	other();
	return 0;
}
//: UNIT other.c
void other(void)
{
	int nested(int n) { return n; }
	nested(1);
}
