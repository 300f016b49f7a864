// Structures by field: of one object, one field decides about reads and another is only computed.
//: KEEPS r.offset += 64;
//: DROPS sum
//: KEEPS static void pf_load(struct reader *r)
//: DATA data 4096
//: RUN
//: COUNTS
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

struct reader { int fd; long offset; long sum; unsigned char block[32]; };

static void load(struct reader *r)
{
	pread(r->fd, r->block, sizeof r->block, r->offset);
	for (unsigned i = 0; i < sizeof r->block; i++)
		r->sum += r->block[i];
}

int main(void)
{
	struct reader r = { .fd = open("data", O_RDONLY) };
	while (r.offset < 4096) {
		load(&r);
		r.sum ^= r.offset;
		r.offset += 64;
	}
	printf("%ld\n", r.sum);
	usleep(200000);
	return 0;
}
