// A structure that is found by one of its members.
//: KEEPS r->at += 64;
//: KEEPS faster(&two.count);
//: DROPS unrelated
//: DATA data 65536
//: RUN
//: COUNTS
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <unistd.h>

#define container_of(p, type, member) ((type *)((char *)(p) - offsetof(type, member)))

struct link { struct link *next; long unrelated; };
struct reader { int fd; long at; struct link link; int step, count; };

static void all(struct link *first)
{
	for (struct link *l = first; l; l = l->next) {
		struct reader *r = container_of(l, struct reader, link);
		r->at += 64;
		l->unrelated += r->at;
	}
}

static void faster(int *count)
{
	struct reader *r = container_of(count, struct reader, count);
	r->step = 3;
}

int main(void)
{
	char buf[64];
	int fd = open("data", O_RDONLY);
	struct reader two = { fd, 7, { NULL, 0 }, 1, 0 }, one = { fd, 0, { &two.link, 0 }, 1, 0 };
	for (int i = 0; i < 30; i++) {
		pread(one.fd, buf, sizeof buf, one.at * one.step);
		pread(two.fd, buf, sizeof buf, two.at * two.step);
		all(&one.link);
		if (i == 10)
			faster(&two.count);
	}
	printf("%ld %ld\n", one.at, two.link.unrelated);
	return 0;
}
