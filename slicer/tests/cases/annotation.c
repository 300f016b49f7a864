// PREFETCH annotations: if there are any, only the files of the annotated variables are prefetched.
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

#define PREFETCH __attribute__((annotate("foreread_prefetch")))

int main(void)
{
	char block[10];
	PREFETCH int film = open("one", O_RDONLY);
	int other = open("two", O_RDONLY);
	for (int i = 0; i < 30; i++) {
		pread(film, block, 10, i * 100);
		pread(other, block, 10, i * 100);
	}
	usleep(200000);
	return 0;
}
