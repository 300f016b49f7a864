// Fields that are accessed as bytes, by their offsets: numbers, pointers, and fields beside the accessed one.
//: KEEPS add(&r,
//: KEEPS have(&r,
//: KEEPS prefetch_fread(r.other, 1, 60)
//: KEEPS *(long *)((char *)&o.inner
//: DATA data 65536
//: RUN
//: COUNTS
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <unistd.h>

struct reader { int fd; char kind; long at; FILE *other; };
struct inner { char tag; long unused; };
struct outer { long first; struct inner inner; long last; };

static void add(void *object, size_t offset, long by)
{
	*(long *)((char *)object + offset) += by;
}

static void have(void *object, size_t offset, FILE *which)
{
	*(FILE **)((char *)object + offset) = which;
}

int main(void)
{
	char buf[64];
	struct reader r = { open("data", O_RDONLY), 0, 0, NULL };
	struct outer o = { 1, { 0, 3 }, 5 };
	have(&r, offsetof(struct reader, other), fopen("data", "r"));
	for (int i = 0; i < 40; i++) {
		pread(r.fd, buf, sizeof buf, r.at);
		add(&r, offsetof(struct reader, at), 64);
		fread(buf, 1, 60, r.other);
		/* From a part to the parts after it. */
		pread(r.fd, buf, 2, o.last);
		*(long *)((char *)&o.inner - offsetof(struct outer, inner) + offsetof(struct outer, last)) += 9;
	}
	printf("%ld\n", r.at);
	return 0;
}
