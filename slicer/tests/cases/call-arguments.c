// Section 4.2: through arguments, pointers to results, and return values, across two levels of calls.
//: STATUS main sliced
//: STATUS where sliced
//: STATUS load sliced
//: STATUS show whole
//: STATUS twice pure
//: KEEPS static void pf_where(int record, long *offset, int noise)
//: KEEPS pf_where(i, &offset, 0)
//: KEEPS *offset = twice(record) * 8;
//: DROPS noise +
//: DROPS sum
//: DATA data 4096
//: RUN
//: COUNTS
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

static long total;

static long twice(long n) { return n * 2; }

static void where(int record, long *offset, int noise)
{
	total += noise;
	*offset = twice(record) * 8;
}

static int load(int fd, long offset, unsigned char *into)
{
	if (lseek(fd, offset, SEEK_SET) < 0)
		return -1;
	return read(fd, into, 16);
}

static void show(int sum) { printf("%d\n", sum); }

int main(void)
{
	unsigned char data[16];
	int sum = 0;
	int fd = open("data", O_RDONLY);
	for (int i = 200; i > 0; i -= 3) {
		long offset;
		where(i, &offset, sum);
		if (load(fd, offset, data) != 16)
			break;
		for (int j = 0; j < 16; j++)
			sum += data[j];
	}
	show(sum + total);
	usleep(200000);
	return 0;
}
