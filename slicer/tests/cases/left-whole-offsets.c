// A function that is left whole reads at the program's position: reads announced before it moved no
// data, and reads after it continue where it stopped.
//: STATUS next whole
//: STATUS number whole
//: STATUS main sliced
//: KEEPS c = (prefetch_whole(), next(f));
//: KEEPS n = (prefetch_whole(), number(fd));
//: TEXT list 0123456789a0123456789b0123456789c0123456789d0123456789e0123456789z
//: DATA data 200000
//: RUN
//: COUNTS
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

/* Computed labels are not sliced. */
static int next(FILE *f)
{
	static void *const ways[] = {&&one, &&one};
	unsigned char c = 0;
	goto *ways[f == NULL];
one:
	fread(&c, 1, 1, f);
	return c;
}

static int number(int fd)
{
	static void *const ways[] = {&&one, &&one};
	unsigned char c = 0;
	goto *ways[fd < 0];
one:
	read(fd, &c, 1);
	return c;
}

int main(void)
{
	FILE *f = fopen("list", "r");
	int fd = open("data", O_RDONLY);
	unsigned sum = 0;
	for (;;) {
		char skipped[10];
		unsigned char block[16] = {0};
		int c, n;
		fread(skipped, 1, 10, f);
		c = next(f);
		if (c == 'z')
			break;
		lseek(fd, c * 700L, SEEK_SET);
		n = number(fd);
		while (n > 0) {
			read(fd, block, 16);
			sum = sum * 3 + block[0] + skipped[0];
			n -= 60;
		}
		sum += lseek(fd, 0, SEEK_CUR);
	}
	printf("%u\n", sum);
	usleep(200000);
	return 0;
}
