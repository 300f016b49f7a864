// A callback of a library function reads: its result decides how often the library calls it.
//: KEEPS qsort(places, 100, sizeof (*places), pf_compare)
//: KEEPS fetch_pread(fd, &p, 1, *(const int *)a)
//: DATA data 65536
//: RUN
//: COUNTS
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static int fd;

static int compare(const void *a, const void *b)
{
	unsigned char p, q;
	pread(fd, &p, 1, *(const int *)a);
	pread(fd, &q, 1, *(const int *)b);
	return p - q;
}

int main(void)
{
	int places[100];
	fd = open("data", O_RDONLY);
	for (int i = 0; i < 100; i++)
		places[i] = i * 377 % 1000;
	qsort(places, 100, sizeof(*places), compare);
	printf("%d\n", places[0]);
	usleep(200000);
	return 0;
}
