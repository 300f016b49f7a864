// goto, switch, early return, break and continue: kept only where they decide about a read.
//: DROPS puts
//: KEEPS goto again;
//: KEEPS switch (i % 5)
//: KEEPS continue;
//: KEEPS break;
//: DATA data 4096
//: RUN
//: COUNTS
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

static int step(int fd, int i)
{
	unsigned char c;
	if (i == 7)
		return 1;
	pread(fd, &c, 1, i * 10);
	if (c > 300)
		puts("never");
	return 0;
}

int main(void)
{
	int fd = open("data", O_RDONLY), i = 0, n = 0, seen = 0;
	char two[2];
again:
	while (i < 40) {
		i++;
		switch (i % 5) {
		case 0:
			continue;
		case 1:
			lseek(fd, i, SEEK_SET);
			/* fall through */
		case 2:
			read(fd, two, 2);
			break;
		case 3:
			if (i == 33)
				goto out;
			break;
		default:
			seen++;
			break;
		}
		n += step(fd, i);
	}
	if (n < 3) {
		n++;
		i = 5;
		goto again;
	}
out:
	printf("%d %d %d\n", i, n, seen);
	usleep(200000);
	return 0;
}
