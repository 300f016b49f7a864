// A program that writes one file and reads another needs no synchronization.
//: DROPS foreread_synchronize
//: DROPS write
//: FILE in data
//: FILE out output
//: DATA in 4096
//: RUN
//: COUNTS
#include <fcntl.h>
#include <unistd.h>

int main(void)
{
	char block[100];
	int in = open("in", O_RDONLY), out = open("out", O_WRONLY | O_CREAT | O_TRUNC, 0600);
	for (long at = 4000; at >= 0; at -= 200) {
		lseek(in, at, SEEK_SET);
		ssize_t n = read(in, block, sizeof block);
		if (write(out, block, n) != n)
			return 1;
	}
	close(out);
	close(in);
	usleep(200000);
	return 0;
}
