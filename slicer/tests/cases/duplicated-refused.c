// A number that is computed, or is the lowest free one, is unknown: nothing is prefetched.
//: UNCHANGED
//: STATUS main whole
//: FILE data unused
#include <fcntl.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	int fd = open("data", O_RDONLY);
	char c = 0;
	(void)argv;
	dup2(fd, argc + 40);
	read(argc + 40, &c, 1);
	close(0);
	dup(fd);
	lseek(0, 900, SEEK_SET);
	read(0, &c, 1);
	return c;
}
