// A function that is left whole and makes reads that cannot be known does not leave its callees
// whole: they are not counted while it runs, and are sliced for others.
//: STATUS look sliced
//: STATUS chosen refused
//: STATUS main sliced
//: PROGRAM { struct foreread_counter *foreread_paused __attribute__((__cleanup__(foreread_resume))) = foreread_pause();
//: DATA data 200000
//: INPUT 7 3\n
//: RUN
//: COUNTS
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

static int look(int fd, long at)
{
	unsigned char c = 0;
	pread(fd, &c, 1, at);
	return c;
}

/* Computed labels are not sliced, and it reads standard input. */
static int chosen(int fd)
{
	static void *const ways[] = {&&one, &&one};
	int n = 0, sum = 0;
	goto *ways[fd < 0];
one:
	while (scanf("%d", &n) == 1)
		sum += look(fd, n * 5000L);
	return sum;
}

int main(void)
{
	int fd = open("data", O_RDONLY);
	unsigned sum = chosen(fd);
	for (int n = 0; n < 20; n++)
		sum = sum * 3 + look(fd, n * 7000L);
	printf("%u\n", sum);
	usleep(200000);
	return 0;
}
