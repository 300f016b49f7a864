/* The kernel reads twice as far ahead on the program's descriptor while the list reads its file from front to back.
 * Advice of the program itself stays. */
#include "check.h"
#include "foreread.h"
#include <sys/mman.h>

/* After the part that is read, the file is longer than any usual read-ahead. */
enum { PAGE = 4096, READ = 8192, PAGES = 24576 };

static char path[PATH_MAX];
static char page[PAGE];

static int resident(int fd)
{
	static unsigned char there[PAGES];
	void *map = mmap(NULL, (size_t)PAGES * PAGE, PROT_READ, MAP_SHARED, fd, 0);
	int i, pages = 0;

	CHECK(map != MAP_FAILED);
	CHECK(mincore(map, (size_t)PAGES * PAGE, there) == 0);
	CHECK(munmap(map, (size_t)PAGES * PAGE) == 0);
	for (i = 0; i < PAGES; i++)
		pages += there[i] & 1;
	return pages;
}

/* Reads the first part of the file. Returns the number of pages in memory when no more arrive. */
static int read_on(int fd)
{
	int i, before, now = 0;

	for (i = 0; i < READ; i++)
		CHECK(pread(fd, page, PAGE, (off_t)i * PAGE) == PAGE);
	do {
		before = now;
		usleep(100000);
		now = resident(fd);
	} while (now != before);
	return now;
}

/* The same with all of the file listed, read by a descriptor that the program has given this advice, if any. */
static int read_listed(int advice)
{
	static foreread_entry list[PAGES];
	foreread_client *c = NULL;
	int fd, i, pages;

	CHECK(evict(path));
	fd = open(path, O_RDONLY);
	CHECK(fd >= 0);
	if (advice >= 0)
		CHECK(posix_fadvise(fd, 0, 0, advice) == 0);
	memset(list, 0, sizeof(list));
	for (i = 0; i < PAGES; i++) {
		list[i].fd = fd;
		list[i].offset = (uint64_t)i * PAGE;
		list[i].length = PAGE;
	}
	SAME(foreread_register_client(&c, NULL, NULL, NULL), 0);
	CHECK(foreread_register_region(c, fd, 0, UINT64_MAX) >= 0);
	SAME(foreread_request_prefetching(c, list, PAGES, FOREREAD_SET), PAGES);
	pages = read_on(fd);
	SAME(foreread_unregister_client(c), 0);
	CHECK(close(fd) == 0);
	return pages;
}

/* The same without a list. */
static int read_plain(void)
{
	int fd, pages;

	CHECK(evict(path));
	fd = open(path, O_RDONLY);
	CHECK(fd >= 0);
	pages = read_on(fd);
	CHECK(close(fd) == 0);
	return pages;
}

int main(int argc, char **argv)
{
	/* Another process may drop the caches between two counts, but not each time. */
	enum { TURNS = 10 };
	int turn, plain, listed, chosen;

	CHECK(argc > 1);
	make_path(path, argv[1], "file", (size_t)PAGES * PAGE);
	if (!evict(path)) {
		fprintf(stderr, "files in this directory cannot be cold\n");
		return 77;
	}
	for (turn = 0; turn < TURNS; turn++) {
		plain = read_plain();
		if (plain == READ) {
			fprintf(stderr, "the kernel's read-ahead is off for this device\n");
			return 77;
		}
		listed = read_listed(-1);
		chosen = read_listed(POSIX_FADV_NORMAL);
		if (listed > plain && chosen == plain)
			return 0;
	}
	fprintf(stderr, "pages in memory: %d alone, %d listed, %d with the program's own choice\n", plain, listed, chosen);
	return 1;
}
