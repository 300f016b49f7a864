/* A list far longer than its capacity, which the callback extends each time it runs out. */
#include "check.h"
#include "foreread.h"

enum { CAPACITY = 4096, ALL = 200000 };

static foreread_client *c;
static int file;
static uint64_t told;

static foreread_entry entry_of(uint64_t number)
{
	foreread_entry entry = {0, 0, 0, 16};

	entry.fd = file;
	entry.offset = number * 7919 % (1 << 20);
	return entry;
}

static void more(void *arg, int marked_fd, int64_t marked_offset, int requested_fd,
		 int64_t requested_offset)
{
	static foreread_entry entries[CAPACITY * 2];
	int64_t accepted;
	size_t n = 0;

	(void)arg, (void)marked_offset, (void)requested_offset;
	SAME(marked_fd, -1);
	SAME(requested_fd, file);
	while (n < CAPACITY * 2 && told + n < ALL) {
		entries[n] = entry_of(told + n);
		n++;
	}
	accepted = foreread_request_prefetching(c, entries, n, FOREREAD_APPEND | FOREREAD_DONE);
	CHECK(accepted >= 0 && accepted <= CAPACITY);
	told += (uint64_t)accepted;
}

int main(int argc, char **argv)
{
	foreread_options options;
	foreread_stats stats;
	foreread_entry first;
	char path[PATH_MAX];
	uint64_t n;

	CHECK(argc > 1);
	make_path(path, argv[1], "file", (1 << 20) + 64);
	memset(&options, 0, sizeof(options));
	options.struct_size = sizeof(options);
	options.capacity = CAPACITY;
	SAME(foreread_register_client(&c, &options, more, NULL), 0);
	file = foreread_register_file(c, path);
	CHECK(file >= 0);
	CHECK(foreread_register_region(c, file, 0, UINT64_MAX) >= 0);
	first = entry_of(told++);
	SAME(foreread_request_prefetching(c, &first, 1, FOREREAD_SET | FOREREAD_DONE), 1);
	for (n = 0; n < ALL; n++) {
		foreread_entry entry = entry_of(n);

		/* Reported by number and by the bytes, in turns. */
		if (n % 2)
			SAME(foreread_at(c, n), 0);
		else
			SAME(foreread_reading(c, file, entry.offset, 8), 0);
	}
	stats.struct_size = sizeof(stats);
	SAME(foreread_get_stats(c, &stats), 0);
	SAME(told, ALL);
	SAME(stats.accepted, ALL);
	SAME(stats.ahead, 0);
	SAME(stats.unlisted, 0);
	SAME(stats.skipped, 0);
	CHECK(stats.callbacks >= ALL / CAPACITY);
	SAME(foreread_unregister_client(c), 0);
	return 0;
}
