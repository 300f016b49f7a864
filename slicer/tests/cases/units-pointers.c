// Functions that another unit calls by pointer and cannot name: one that runs unchanged, and one
// with a prefetch version, which is passed to a call, a library function and a new thread.
//: STATUS mix pure
//: STATUS hop sliced
//: KEEPS pf_hop_1_is((const void *)foreread_target) ? pf_hop_1(
//: KEEPS : foreread_target(at)
//: DROPS mix_is
//: DROPS long pf_mix
//: DATA data 65536
//: RUN
//: COUNTS
//: UNIT main.c
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include "walk.h"

static int fd;

static long mix(long at) { return at * 31 % 65000; }

static long hop(long at)
{
	unsigned char c = 0;
	pread(fd, &c, 1, at);
	return at + 1 + c;
}

static void *other(void *unused)
{
	unsigned char c = 0;
	for (int i = 0; i < 20; i++)
		pread(fd, &c, 1, 4096 * (i % 7));
	return unused;
}

static int near(const void *a, const void *b)
{
	unsigned char c = 0;
	pread(fd, &c, 1, 100 * *(const int *)a);
	return *(const int *)a - *(const int *)b;
}

int main(void)
{
	unsigned char c = 0;
	unsigned sum = 0;
	struct walk walks[] = { { mix }, { hop } };
	int keys[] = { 5, 3, 9, 7 };
	fd = open("data", O_RDONLY);
	for (int i = 0; i < 40; i++) {
		pread(fd, &c, 1, step(&walks[i % 2], 11 * i));
		sum = sum * 3 + c;
	}
	order(keys, 4, near);
	for (int i = 0; i < 4; i++) {
		pread(fd, &c, 1, keys[i]);
		sum = sum * 3 + c;
	}
	in_thread(other);
	printf("%u\n", sum);
	usleep(200000);
	return 0;
}
//: UNIT walk.h
struct walk { long (*next)(long at); };
long step(const struct walk *walk, long at);
void order(int *keys, int count, int (*compare)(const void *, const void *));
void in_thread(void *(*body)(void *));
//: UNIT walk.c
#include <pthread.h>
#include <stdlib.h>
#include "walk.h"

long step(const struct walk *walk, long at) { return walk->next(at); }

void order(int *keys, int count, int (*compare)(const void *, const void *))
{
	qsort(keys, count, sizeof *keys, compare);
}

void in_thread(void *(*body)(void *))
{
	pthread_t thread;
	pthread_create(&thread, 0, body, 0);
	pthread_join(thread, 0);
}
