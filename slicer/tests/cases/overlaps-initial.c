// A structure used as another with the same beginning: values assigned through one are read through the other.
//: KEEPS p->at += 7919;
//: KEEPS turn(s);
//: KEEPS s->next = &other;
//: DROPS unrelated
//: DATA data 4194304
//: RUN
//: COUNTS
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

struct a { int kind; long at; struct a *next; long unrelated; char name[32]; };
struct b { int kind; long at; void *next; long unrelated; };
/* For objects that are never used as another type, nothing more is kept. */
struct c { long at, sum; };

static void advance(void *v)
{
	struct b *p = v;
	p->at += 7919;
	p->unrelated++;
}

static void turn(void *v)
{
	struct b *q = v;
	struct a *other = q->next;
	other->at += 5;
}

int main(void)
{
	char buf[512];
	int fd = open("data", O_RDONLY);
	struct a *s = calloc(1, sizeof *s), other = { .at = 3 };
	struct c c = { 0, 0 };
	s->next = &other;
	for (int i = 0; i < 40; i++) {
		pread(fd, buf, sizeof buf, s->at * 4096 % 4000000);
		advance(s);
		turn(s);
		pread(fd, buf, sizeof buf, other.at % 1000 * 4096);
		c.sum += buf[0];
	}
	printf("%ld %ld %ld\n", s->at, s->unrelated, c.sum);
	return 0;
}
