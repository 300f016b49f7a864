// Calls of one function are distinguished: the data of one call decides where the program reads
// next and is fetched, the reads of the others are announced. Functions between pass the buffer on.
//: STATUS get sliced
//: KEEPS (to ? fetch_pread(fd, to, bytes, at) : prefetch_pread(fd, bytes, at));
//: KEEPS pf_get(fd, &link, sizeof (link), n * 3000L);
//: KEEPS pf_get(fd, 0, 256, link * 2L);
//: KEEPS pf_whole(fd, 0, 64, link);
//: KEEPS pf_get(fd, to, bytes, at);
//: KEEPS fetch_pread(fd, first, 4, 0)
//: DATA data 200000
//: RUN
//: COUNTS
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

static long get(int fd, void *to, long bytes, long at)
{
	return pread(fd, to, bytes, at);
}

static int whole(int fd, unsigned char *to, long bytes, long at)
{
	return get(fd, to, bytes, at) == bytes;
}

/* With another use: no buffer. */
static long start(int fd, unsigned char *first)
{
	pread(fd, first, 4, 0);
	return first[1] * 100L;
}

int main(void)
{
	int fd = open("data", O_RDONLY);
	unsigned sum = 0, ends = 0;
	unsigned char head[4];
	long from = start(fd, head);
	for (int n = 0; n < 30; n++) {
		unsigned short link = 0;
		unsigned char block[256], tail[64];
		get(fd, &link, sizeof(link), n * 3000L);
		get(fd, block, 256, link * 2L);
		ends += whole(fd, tail, 64, link);
		pread(fd, tail, 1, from + n);
		for (int k = 0; k < 64; k++)
			sum = sum * 3 + block[k * 4] + tail[k];
	}
	printf("%u %u\n", sum, ends);
	usleep(200000);
	return 0;
}
