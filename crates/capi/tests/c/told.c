/* Programs whose reads are not intercepted report them: by descriptor, by path, by entry. Also the arguments of
 * their callbacks. */
#include "check.h"
#include "foreread.h"

static int calls;

static void callback(void *arg, int marked_fd, int64_t marked_offset, int requested_fd,
		     int64_t requested_offset)
{
	char byte;

	calls++;
	/* Reads of the callback are not matched. */
	CHECK(pread(*(int *)arg, &byte, 1, 9000) == 1);
	SAME(marked_fd, FOREREAD_FIRST_FILE);
	SAME(marked_offset, 4096);
	SAME(requested_fd, FOREREAD_FIRST_FILE);
	SAME(requested_offset, calls == 1 ? 8192 : 5000);
}

static foreread_client *brief;

/* A callback that ends its client. */
static void leave(void *arg, int marked_fd, int64_t marked_offset, int requested_fd,
		  int64_t requested_offset)
{
	(void)marked_fd, (void)marked_offset, (void)requested_fd, (void)requested_offset;
	++*(int *)arg;
	SAME(foreread_unregister_client(brief), 0);
}

/* The number of times that the kernel was asked to drop its caches; 0 if it is unknown. */
static long dropped(void)
{
	char line[256];
	long times = 0;
	FILE *stat = fopen("/proc/vmstat", "r");

	while (stat != NULL && fgets(line, sizeof(line), stat) != NULL)
		if (sscanf(line, "drop_pagecache %ld", &times) == 1)
			break;
	if (stat != NULL)
		fclose(stat);
	return times;
}

/* A list much longer than the budget, in no order: reported reads make room for later entries. True if they did. */
static int made_room(const char *path, unsigned flags)
{
	static foreread_entry entries[1024];
	foreread_client *c = NULL;
	foreread_options options;
	foreread_stats stats;
	unsigned char *map, there = 0;
	int fd, file, patience, arrived = 0;
	long before = dropped();
	size_t i;

	fd = open(path, O_RDONLY);
	map = mmap(NULL, 1024 * 8192, PROT_READ, MAP_SHARED, fd, 0);
	CHECK(map != MAP_FAILED && close(fd) == 0);
	memset(&options, 0, sizeof(options));
	options.struct_size = sizeof(options);
	options.budget = 1 << 20;
	options.flags = flags;
	SAME(foreread_register_client(&c, &options, NULL, NULL), 0);
	file = foreread_register_file(c, path);
	CHECK(foreread_register_region(c, file, 0, UINT64_MAX) >= 0);
	for (i = 0; i < 1024; i++) {
		entries[i].fd = file;
		entries[i].offset = i * 409 % 1024 * 8192;
		entries[i].length = 4096;
	}
	SAME(foreread_request_prefetching(c, entries, 1024, FOREREAD_SET), 1024);
	stats.struct_size = sizeof(stats);
	for (i = 0; i < 1024; i++) {
		/* In any order of fetching, this entry is among those that the budget has room for. If it was
		 * dropped from memory again, the wait ends. */
		for (patience = 0; patience < 2000; patience++) {
			CHECK(mincore(map + entries[i].offset, 4096, &there) == 0);
			if ((there & 1) || dropped() != before)
				break;
			usleep(1000);
		}
		arrived += there & 1;
		SAME(foreread_reading(c, file, entries[i].offset, 4096), 0);
		SAME(foreread_read_done(c, file, entries[i].offset, 4096, 1000), 0);
	}
	CHECK(munmap(map, 1024 * 8192) == 0);
	for (patience = 0; patience < 10000; patience++) {
		SAME(foreread_get_stats(c, &stats), 0);
		if (stats.useful + stats.late >= 4096 * 512 || dropped() != before)
			break;
		usleep(1000);
	}
	SAME(foreread_unregister_client(c), 0);
	return arrived >= 512 && stats.useful + stats.late >= 4096 * 512;
}

/* The same, repeated if the caches were dropped meanwhile. */
static void makes_room(const char *path, unsigned flags)
{
	long before;
	int tries;

	for (tries = 0; tries < 50; tries++) {
		before = dropped();
		if (made_room(path, flags))
			return;
		CHECK(dropped() != before);
		usleep(100000);
	}
	fprintf(stderr, "skipped: the machine's caches are emptied all the time\n");
}

/* A registered file stays the same if its name or the working directory changes. A report is written to the path that was
 * meant at the registration. */
static void renamed(const char *folder)
{
	foreread_client *c = NULL;
	foreread_entry entry = {0, 0, 0, 100};
	foreread_options options;
	int file;

	memset(&options, 0, sizeof(options));
	options.struct_size = sizeof(options);
	options.check = "its-report";
	CHECK(chdir(folder) == 0);
	SAME(foreread_register_client(&c, &options, NULL, NULL), 0);
	file = foreread_register_file(c, "file");
	CHECK(file >= 0);
	CHECK(chdir("/") == 0);
	SAME(foreread_register_region(c, file, 65536, UINT64_MAX), -ERANGE);
	CHECK(foreread_register_region(c, file, 0, 100) >= 0);
	CHECK(chdir(folder) == 0 && rename("file", "renamed") == 0);
	CHECK(foreread_register_region(c, file, 0, 200) >= 0);
	CHECK(rename("renamed", "file") == 0 && chdir("/") == 0);
	entry.fd = file;
	SAME(foreread_request_prefetching(c, &entry, 1, FOREREAD_SET), 1);
	SAME(foreread_unregister_client(c), 0);
	CHECK(chdir(folder) == 0 && access("its-report", R_OK) == 0 && chdir("/") == 0);
}

/* A reported read may reach to the last byte that any file can have. */
static void to_the_end(int fd)
{
	foreread_entry entries[2] = {{fd, 0, 0, INT64_MAX}, {fd, 0, 100, 1}};
	foreread_client *c = NULL;
	foreread_stats stats;

	SAME(foreread_register_client(&c, NULL, NULL, NULL), 0);
	CHECK(foreread_register_region(c, fd, 0, UINT64_MAX) >= 0);
	SAME(foreread_request_prefetching(c, entries, 2, FOREREAD_SET), 2);
	SAME(foreread_at(c, 0), 0);
	SAME(foreread_reading(c, fd, 0, INT64_MAX), 0);
	stats.struct_size = sizeof(stats);
	SAME(foreread_finish_client(c, &stats), 0);
}

int main(int argc, char **argv)
{
	foreread_client *c = NULL;
	foreread_options options;
	foreread_entry entries[4];
	foreread_stats stats;
	char path[PATH_MAX], report[PATH_MAX], text[4096] = "";
	int fd, file, stream_fd, patience, left = 0;
	size_t i;
	FILE *stream;

	CHECK(argc > 1);
	make_path(path, argv[1], "file", 65536);
	snprintf(report, sizeof(report), "%s/report", argv[1]);
	fd = open(path, O_RDONLY);
	CHECK(fd >= 0);
	memset(&options, 0, sizeof(options));
	options.struct_size = sizeof(options);
	options.capacity = 3;
	options.budget = 1 << 20;
	options.check = report;
	options.flags = FOREREAD_KEEP;
	SAME(foreread_register_client(&c, &options, callback, &fd), 0);
	file = foreread_register_file(c, path);
	SAME(file, FOREREAD_FIRST_FILE);
	CHECK(foreread_register_region(c, file, 0, UINT64_MAX) >= 0);

	/* The list has room for three. */
	memset(entries, 0, sizeof(entries));
	for (i = 0; i < 4; i++) {
		entries[i].fd = file;
		entries[i].offset = 4096 * i;
		entries[i].length = 10;
	}
	entries[1].flags = FOREREAD_MARKED;
	SAME(foreread_request_prefetching(c, entries, 4, FOREREAD_SET | FOREREAD_DONE), 3);
	SAME(foreread_at(c, 1), 0);
	SAME(calls, 0);
	/* Now there is room for the fourth, which is entry 3. */
	SAME(foreread_request_prefetching(c, entries + 3, 1, FOREREAD_APPEND | FOREREAD_DONE),
	     1);
	SAME(foreread_at(c, 4), -ERANGE);
	SAME(foreread_request_prefetching(c, NULL, 0, FOREREAD_SET), 0);
	SAME(foreread_request_prefetching(c, entries, 3, FOREREAD_APPEND | FOREREAD_DONE), 3);
	SAME(foreread_reading(c, file, 4100, 1), 0);
	SAME(calls, 0);
	/* The last entry, reported by its bytes; then a read that is not on the list. */
	SAME(foreread_reading(c, file, 8192, 100), 0);
	SAME(calls, 1);
	SAME(foreread_reading(c, file, 5000, 100), 0);

	stats.struct_size = sizeof(stats);
	SAME(foreread_get_stats(c, &stats), 0);
	SAME(stats.accepted, 7);
	SAME(stats.ahead, 0);
	SAME(stats.unlisted, 1);
	SAME(stats.callbacks, calls);

	/* stdio is not intercepted: its read is reported. */
	stream = fopen(path, "r");
	CHECK(stream != NULL);
	stream_fd = fileno(stream);
	CHECK(foreread_register_region(c, stream_fd, 0, UINT64_MAX) >= 0);
	entries[0].fd = stream_fd;
	SAME(foreread_request_prefetching(c, entries, 1, FOREREAD_SET), 1);
	SAME(foreread_reading(c, stream_fd, 0, 16), 0);
	CHECK(fread(text, 1, 16, stream) == 16);
	SAME((unsigned char)text[5], byte_at(5));
	SAME(foreread_get_stats(c, &stats), 0);
	SAME(stats.ahead, 0);
	CHECK(fclose(stream) == 0);

	SAME(foreread_unregister_client(c), 0);
	stream = fopen(report, "r");
	CHECK(stream != NULL);
	CHECK(fread(text, 1, sizeof(text) - 1, stream) > 0);
	CHECK(strstr(text, "listed") != NULL);
	CHECK(fclose(stream) == 0);

	SAME(foreread_register_client(&brief, NULL, leave, &left), 0);
	CHECK(foreread_register_region(brief, fd, 0, UINT64_MAX) >= 0);
	read_byte(fd, 10);
	read_byte(fd, 20);
	SAME(left, 1);
	SAME(foreread_at(brief, 0), -EINVAL);
	to_the_end(fd);
	renamed(argv[1]);

	make_path(path, argv[1], "cold", 1024 * 8192);
	if (evict(path)) {
		makes_room(path, 0);
		/* Pages that were still on their way may arrive after the client's end. */
		for (patience = 0; !evict(path); patience++) {
			CHECK(patience < 1000);
			usleep(10000);
		}
		makes_room(path, FOREREAD_TIMED);
	} else {
		fprintf(stderr, "skipped: the file system keeps the file in memory\n");
	}
	return 0;
}
