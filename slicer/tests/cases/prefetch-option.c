// --prefetch does the same by name.
//: ARGS --prefetch film
//: KEEPS prefetch_pread(film, 10, i * 100)
//: DROPS other
//: FILE one data
//: FILE two unused
//: DATA one 4096
//: DATA two 4096
//: RUN
//: COUNTS
#include <fcntl.h>
#include <unistd.h>

int main(void)
{
	char block[10];
	int film = open("one", O_RDONLY);
	int other = open("two", O_RDONLY);
	for (int i = 0; i < 30; i++) {
		pread(film, block, 10, i * 100);
		pread(other, block, 10, i * 100);
	}
	usleep(200000);
	return 0;
}
