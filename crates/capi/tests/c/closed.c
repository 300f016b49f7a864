/* At the end of a client, each byte issued is accounted for, even while other threads use the client. */
#include "check.h"
#include "foreread.h"
#include <pthread.h>

enum { PAGES = 512, PAGE = 4096 };

static foreread_client *c;
static int fd, inside, leave;

static uint64_t accounted(const foreread_stats *stats)
{
	return stats->useful + stats->late + stats->wasted + stats->evicted + stats->infill;
}

/* True if a page arrives in memory soon. */
static int arrives(unsigned char *page)
{
	unsigned char there = 0;
	int patience;

	for (patience = 0; patience < 10000; patience++) {
		CHECK(mincore(page, PAGE, &there) == 0);
		if (there & 1)
			return 1;
		usleep(1000);
	}
	return 0;
}

/* Every other page is listed, and half of these are read. The pages between them are infill, if that pays on
 * the device. */
static void partly_read(const char *path)
{
	static foreread_entry entries[PAGES / 2];
	foreread_stats stats;
	unsigned char *map;
	int file, cold;
	size_t i;

	cold = open(path, O_RDONLY);
	map = mmap(NULL, PAGES * PAGE, PROT_READ, MAP_SHARED, cold, 0);
	CHECK(map != MAP_FAILED && close(cold) == 0);
	SAME(foreread_register_client(&c, NULL, NULL, NULL), 0);
	file = foreread_register_file(c, path);
	CHECK(foreread_register_region(c, file, 0, UINT64_MAX) >= 0);
	for (i = 0; i < PAGES / 2; i++) {
		entries[i].fd = file;
		entries[i].offset = (PAGES - 2 - 2 * i) * PAGE;
		entries[i].length = PAGE;
	}
	SAME(foreread_request_prefetching(c, entries, PAGES / 2, FOREREAD_SET), PAGES / 2);
	for (i = 0; i < PAGES / 2; i++)
		CHECK(arrives(map + entries[i].offset));
	for (i = 0; i < PAGES / 4; i++)
		SAME(foreread_reading(c, file, entries[i].offset, PAGE), 0);
	stats.struct_size = sizeof(stats);
	SAME(foreread_finish_client(c, &stats), 0);
	SAME(accounted(&stats), stats.issued);
	SAME(stats.useful + stats.late + stats.evicted, PAGES / 4 * PAGE);
	SAME(stats.wasted, PAGES / 4 * PAGE);
	SAME(stats.accepted, PAGES / 2);
	SAME(stats.listed, PAGES / 4);
	SAME(stats.ahead, PAGES / 4);
	CHECK(munmap(map, PAGES * PAGE) == 0);
	SAME(foreread_finish_client(c, &stats), -EINVAL);
	SAME(foreread_unregister_client(c), -EINVAL);
}

/* Only members that the structure covers are written. */
static void short_structure(void)
{
	foreread_stats stats;

	SAME(foreread_register_client(&c, NULL, NULL, NULL), 0);
	memset(&stats, 0x55, sizeof(stats));
	stats.struct_size = 16;
	SAME(foreread_finish_client(c, &stats), 0);
	SAME(stats.accepted, 0);
	CHECK(stats.ahead == 0x5555555555555555u);
}

static void finishes(void *arg, int marked_fd, int64_t marked_offset, int requested_fd,
		     int64_t requested_offset)
{
	foreread_stats *stats = arg;

	(void)marked_fd, (void)marked_offset, (void)requested_fd, (void)requested_offset;
	SAME(foreread_finish_client(c, stats), 0);
}

/* The callback may end the client. */
static void in_callback(void)
{
	foreread_stats stats;

	stats.struct_size = sizeof(stats);
	SAME(foreread_register_client(&c, NULL, finishes, &stats), 0);
	CHECK(foreread_register_region(c, fd, 0, UINT64_MAX) >= 0);
	read_byte(fd, 10);
	SAME(stats.callbacks, 1);
	SAME(stats.unlisted, 1);
	SAME(foreread_at(c, 0), -EINVAL);
	read_byte(fd, 20);
}

static void stays(void *arg, int marked_fd, int64_t marked_offset, int requested_fd,
		  int64_t requested_offset)
{
	(void)arg, (void)marked_fd, (void)marked_offset, (void)requested_fd;
	(void)requested_offset;
	__atomic_store_n(&inside, 1, __ATOMIC_SEQ_CST);
	while (!__atomic_load_n(&leave, __ATOMIC_SEQ_CST))
		usleep(1000);
}

static void *reads(void *arg)
{
	read_byte(fd, 10);
	return arg;
}

/* A callback that runs on another thread does not delay the end. */
static void in_use(void)
{
	foreread_stats stats;
	pthread_t thread;

	SAME(foreread_register_client(&c, NULL, stays, NULL), 0);
	CHECK(foreread_register_region(c, fd, 0, UINT64_MAX) >= 0);
	CHECK(pthread_create(&thread, NULL, reads, NULL) == 0);
	while (!__atomic_load_n(&inside, __ATOMIC_SEQ_CST))
		usleep(1000);
	stats.struct_size = sizeof(stats);
	SAME(foreread_finish_client(c, &stats), 0);
	SAME(stats.callbacks, 1);
	__atomic_store_n(&leave, 1, __ATOMIC_SEQ_CST);
	CHECK(pthread_join(thread, NULL) == 0);
}

static void *ends(void *arg)
{
	foreread_stats stats;

	stats.struct_size = sizeof(stats);
	*(int *)arg = foreread_finish_client(c, &stats);
	return NULL;
}

/* If several threads finish a client, one succeeds. */
static void once(void)
{
	pthread_t threads[4];
	int answers[4], i, done = 0;

	SAME(foreread_register_client(&c, NULL, NULL, NULL), 0);
	for (i = 0; i < 4; i++)
		CHECK(pthread_create(&threads[i], NULL, ends, &answers[i]) == 0);
	for (i = 0; i < 4; i++) {
		CHECK(pthread_join(threads[i], NULL) == 0);
		CHECK(answers[i] == 0 || answers[i] == -EINVAL);
		done += answers[i] == 0;
	}
	SAME(done, 1);
}

int main(int argc, char **argv)
{
	char path[PATH_MAX];

	CHECK(argc > 1);
	fd = make_file(argv[1], "file", 450);
	short_structure();
	in_callback();
	in_use();
	once();
	make_path(path, argv[1], "cold", PAGES * PAGE);
	if (evict(path))
		partly_read(path);
	else
		fprintf(stderr, "skipped: the file system keeps the file in memory\n");
	return 0;
}
