/* Calls and reads from many threads. Lists that are passed on at the same time do not mix. A callback that never
 * returns blocks only its own thread. */
#include "check.h"
#include "foreread.h"
#include <pthread.h>

enum { THREADS = 8, ROUNDS = 2000, SIZE = 65536, LONG = 300000, LISTS = 20 };

static foreread_client *c;
static int fd;
static pthread_t stuck;
static int entered;

static void *crowd(void *arg)
{
	unsigned int state = (unsigned int)(size_t)arg * 2654435761u + 1;
	int round;

	for (round = 0; round < ROUNDS; round++) {
		foreread_entry entries[4];
		foreread_stats stats;
		foreread_client *own = NULL;
		int i, region;

		memset(entries, 0, sizeof(entries));
		for (i = 0; i < 4; i++) {
			state = state * 1664525u + 1013904223u;
			entries[i].fd = fd;
			entries[i].offset = state % SIZE;
			entries[i].flags = state >> 31;
		}
		CHECK(foreread_request_prefetching(c, entries, 4,
						   round % 3 ? FOREREAD_APPEND : FOREREAD_SET) >= 0);
		for (i = 0; i < 4; i++)
			read_byte(fd, (off_t)entries[i].offset);
		stats.struct_size = sizeof(stats);
		SAME(foreread_get_stats(c, &stats), 0);
		region = foreread_register_region(c, fd, state % SIZE, SIZE);
		CHECK(region >= 0);
		SAME(foreread_unregister_region(c, region), 0);
		if (round % 500 == 0) {
			SAME(foreread_register_client(&own, NULL, NULL, NULL), 0);
			CHECK(foreread_register_region(own, fd, 0, SIZE) >= 0);
			read_byte(fd, 5);
			SAME(foreread_unregister_client(own), 0);
		}
	}
	return NULL;
}

/* Replaces the list by a long one, which the library handles in parts. */
static void *lists(void *arg)
{
	foreread_entry *entries = calloc(LONG, sizeof(*entries));
	int i;

	(void)arg;
	CHECK(entries);
	for (i = 0; i < LONG; i++)
		entries[i].fd = fd;
	for (i = 0; i < LISTS; i++)
		SAME(foreread_request_prefetching(c, entries, LONG, FOREREAD_SET), LONG);
	free(entries);
	return NULL;
}

static void never(void *arg, int marked_fd, int64_t marked_offset, int requested_fd,
		  int64_t requested_offset)
{
	(void)arg, (void)marked_fd, (void)marked_offset, (void)requested_fd;
	(void)requested_offset;
	CHECK(pthread_equal(pthread_self(), stuck));
	__atomic_store_n(&entered, 1, __ATOMIC_SEQ_CST);
	for (;;)
		pause();
}

static void *victim(void *arg)
{
	(void)arg;
	stuck = pthread_self();
	read_byte(fd, 7);
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t threads[THREADS];
	foreread_client *slow = NULL;
	foreread_stats stats;
	size_t i;

	CHECK(argc > 1);
	fd = make_file(argv[1], "file", SIZE);
	SAME(foreread_register_client(&c, NULL, NULL, NULL), 0);
	CHECK(foreread_register_region(c, fd, 0, UINT64_MAX) >= 0);
	for (i = 0; i < THREADS; i++)
		CHECK(pthread_create(&threads[i], NULL, crowd, (void *)i) == 0);
	for (i = 0; i < THREADS; i++)
		CHECK(pthread_join(threads[i], NULL) == 0);

	for (i = 0; i < 2; i++)
		CHECK(pthread_create(&threads[i], NULL, lists, NULL) == 0);
	for (i = 0; i < 2; i++)
		CHECK(pthread_join(threads[i], NULL) == 0);
	stats.struct_size = sizeof(stats);
	SAME(foreread_get_stats(c, &stats), 0);
	SAME(stats.ahead, LONG);
	SAME(foreread_unregister_client(c), 0);

	SAME(foreread_register_client(&slow, NULL, never, NULL), 0);
	CHECK(foreread_register_region(slow, fd, 0, UINT64_MAX) >= 0);
	CHECK(pthread_create(&threads[0], NULL, victim, NULL) == 0);
	while (!__atomic_load_n(&entered, __ATOMIC_SEQ_CST))
		usleep(1000);
	for (i = 0; i < 1000; i++)
		read_byte(fd, (off_t)i);
	SAME(foreread_unregister_client(slow), 0);
	read_byte(fd, 8);
	return 0;
}
