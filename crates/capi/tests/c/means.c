/* For each way of reading, whether it is intercepted or must be reported: no read counts twice, and no
 * unreported one counts. */
#include "check.h"
#include "foreread.h"

#include <aio.h>
#include <linux/aio_abi.h>
#include <linux/io_uring.h>
#include <sys/sendfile.h>
#include <sys/syscall.h>

enum { PAGE = 4096, PAGES = 64 };

static foreread_client *c;
static const char *folder;
static char *page;
static int fd;

/* Each of these reads page n of the file; 0 if this machine cannot. */
static int by_pread(int n)
{
	return pread(fd, page, PAGE, (off_t)n * PAGE) == PAGE;
}

static int by_read(int n)
{
	return lseek(fd, (off_t)n * PAGE, SEEK_SET) >= 0 && read(fd, page, PAGE) == PAGE;
}

static int by_preadv2(int n)
{
	struct iovec vector = {page, PAGE};

	return preadv2(fd, &vector, 1, (off_t)n * PAGE, 0) == PAGE;
}

static int by_stdio(int n)
{
	static FILE *file;

	if (file == NULL)
		file = fdopen(fd, "r");
	CHECK(file != NULL && fseek(file, (long)n * PAGE, SEEK_SET) == 0);
	return fread(page, PAGE, 1, file) == 1;
}

static int by_mmap(int n)
{
	static const char *map;

	if (map == NULL)
		map = mmap(NULL, PAGES * PAGE, PROT_READ, MAP_SHARED, fd, 0);
	CHECK(map != MAP_FAILED);
	memcpy(page, map + (size_t)n * PAGE, PAGE);
	return 1;
}

static int by_system_call(int n)
{
	return syscall(SYS_pread64, fd, page, (size_t)PAGE, (off_t)n * PAGE) == PAGE;
}

/* The target of copies is a file, because every kernel can copy to a file. */
static int target(void)
{
	static int made = -1;
	char path[PATH_MAX];

	if (made < 0) {
		snprintf(path, sizeof(path), "%s/target", folder);
		made = open(path, O_RDWR | O_CREAT, 0600);
	}
	CHECK(made >= 0 && lseek(made, 0, SEEK_SET) == 0);
	return made;
}

/* Reads the copied bytes. */
static int arrived(void)
{
	return syscall(SYS_pread64, target(), page, (size_t)PAGE, (off_t)0) == PAGE;
}

static int by_sendfile(int n)
{
	off_t at = (off_t)n * PAGE;

	return sendfile(target(), fd, &at, PAGE) == PAGE && arrived();
}

static int by_copy_file_range(int n)
{
	off64_t from = (off64_t)n * PAGE, to = 0;

	return copy_file_range(fd, &from, target(), &to, PAGE, 0) == PAGE && arrived();
}

static int by_splice(int n)
{
	off64_t from = (off64_t)n * PAGE;
	int ends[2], done;

	CHECK(pipe(ends) == 0);
	done = splice(fd, &from, ends[1], NULL, PAGE, 0) == PAGE && read(ends[0], page, PAGE) == PAGE;
	CHECK(close(ends[0]) == 0 && close(ends[1]) == 0);
	return done;
}

static int by_aio_read(int n)
{
	struct aiocb order;
	const struct aiocb *orders[1] = {&order};

	memset(&order, 0, sizeof(order));
	order.aio_fildes = fd;
	order.aio_buf = page;
	order.aio_nbytes = PAGE;
	order.aio_offset = (off_t)n * PAGE;
	CHECK(aio_read(&order) == 0);
	while (aio_error(&order) == EINPROGRESS)
		aio_suspend(orders, 1, NULL);
	return aio_return(&order) == PAGE;
}

static int by_io_submit(int n)
{
	static aio_context_t context;
	struct iocb order, *orders[1] = {&order};
	struct io_event event;

	if (context == 0 && syscall(SYS_io_setup, 1, &context) != 0)
		return 0;
	memset(&order, 0, sizeof(order));
	order.aio_lio_opcode = IOCB_CMD_PREAD;
	order.aio_fildes = (unsigned)fd;
	order.aio_buf = (uintptr_t)page;
	order.aio_nbytes = PAGE;
	order.aio_offset = (long long)n * PAGE;
	return syscall(SYS_io_submit, context, 1, orders) == 1 &&
	       syscall(SYS_io_getevents, context, 1, 1, &event, NULL) == 1 && event.res == PAGE;
}

static int by_io_uring(int n)
{
	static struct io_uring_params params;
	static struct io_uring_sqe *orders;
	static char *rings;
	static int ring = -1;
	unsigned *tail;

	if (ring < 0) {
		ring = (int)syscall(SYS_io_uring_setup, 1, &params);
		if (ring < 0 || !(params.features & IORING_FEAT_SINGLE_MMAP))
			return 0;
		rings = mmap(NULL, 16384, PROT_READ | PROT_WRITE, MAP_SHARED, ring, IORING_OFF_SQ_RING);
		orders = mmap(NULL, sizeof(*orders), PROT_READ | PROT_WRITE, MAP_SHARED, ring,
			      IORING_OFF_SQES);
		CHECK(rings != MAP_FAILED && orders != MAP_FAILED);
	}
	memset(orders, 0, sizeof(*orders));
	orders->opcode = IORING_OP_READ;
	orders->fd = fd;
	orders->addr = (uintptr_t)page;
	orders->len = PAGE;
	orders->off = (uint64_t)n * PAGE;
	tail = (unsigned *)(void *)(rings + params.sq_off.tail);
	__atomic_store_n(tail, *tail + 1, __ATOMIC_RELEASE);
	if (syscall(SYS_io_uring_enter, ring, 1, 1, IORING_ENTER_GETEVENTS, NULL, 0) != 1)
		return 0;
	/* The result is consumed. */
	tail = (unsigned *)(void *)(rings + params.cq_off.tail);
	__atomic_store_n((unsigned *)(void *)(rings + params.cq_off.head),
			 __atomic_load_n(tail, __ATOMIC_ACQUIRE), __ATOMIC_RELEASE);
	return 1;
}

static uint64_t counted(void)
{
	foreread_stats stats;

	stats.struct_size = sizeof(stats);
	SAME(foreread_get_stats(c, &stats), 0);
	SAME(stats.unlisted, 0);
	SAME(stats.outside, 0);
	return stats.listed;
}

static void check_page(int n)
{
	size_t i;

	for (i = 0; i < PAGE; i++)
		SAME((unsigned char)page[i], byte_at((size_t)n * PAGE + i));
}

/* Entries of a descriptor that reads past the page cache are matched, but not fetched. Entries of another
 * descriptor of the same file are fetched. */
static void direct(const char *path)
{
	foreread_entry list[PAGES];
	foreread_client *own = NULL;
	foreread_stats stats;
	int other, i;

	other = open(path, O_RDONLY | O_DIRECT);
	if (other < 0 || !evict(path)) {
		puts("skipped: no O_DIRECT here, or nothing can be evicted");
		return;
	}
	SAME(foreread_register_client(&own, NULL, NULL, NULL), 0);
	CHECK(foreread_register_region(own, other, 0, UINT64_MAX) >= 0);
	memset(list, 0, sizeof(list));
	for (i = 0; i < PAGES; i++) {
		list[i].fd = other;
		list[i].offset = (uint64_t)(PAGES - 1 - i) * PAGE;
		list[i].length = PAGE;
	}
	SAME(foreread_request_prefetching(own, list, PAGES, FOREREAD_SET | FOREREAD_DONE), PAGES);
	usleep(100000);
	for (i = 0; i < PAGES; i++) {
		SAME(pread(other, page, PAGE, (off_t)list[i].offset), PAGE);
		check_page(PAGES - 1 - i);
	}
	stats.struct_size = sizeof(stats);
	SAME(foreread_get_stats(own, &stats), 0);
	SAME(stats.listed, PAGES);
	SAME(stats.issued, 0);
	/* The page cache serves the other descriptor. */
	CHECK(foreread_register_region(own, fd, 0, UINT64_MAX) >= 0);
	for (i = 0; i < PAGES; i++)
		list[i].fd = fd;
	SAME(foreread_request_prefetching(own, list, PAGES, FOREREAD_SET), PAGES);
	for (i = 0; i < 10000 && stats.issued < PAGES * PAGE; i++) {
		usleep(1000);
		SAME(foreread_get_stats(own, &stats), 0);
	}
	SAME(stats.issued, PAGES * PAGE);
	SAME(foreread_finish_client(own, &stats), 0);
	SAME(stats.wasted, PAGES * PAGE);
	CHECK(close(other) == 0);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		int (*read_page)(int n);
		int seen;
	} means[] = {
		{"pread", by_pread, 1},
		{"read", by_read, 1},
		{"preadv2", by_preadv2, 1},
		{"stdio", by_stdio, 0},
		{"mmap", by_mmap, 0},
		{"a system call", by_system_call, 0},
		{"sendfile", by_sendfile, 0},
		{"copy_file_range", by_copy_file_range, 0},
		{"splice", by_splice, 0},
		{"aio_read", by_aio_read, 0},
		{"io_submit", by_io_submit, 0},
		{"io_uring", by_io_uring, 0},
	};
	const int count = sizeof(means) / sizeof(*means);
	foreread_entry list[PAGES];
	char path[PATH_MAX];
	uint64_t before;
	int i;

	CHECK(argc > 1);
	folder = argv[1];
	page = aligned_alloc(PAGE, PAGE);
	CHECK(page != NULL);
	make_path(path, folder, "file", PAGES * PAGE);
	fd = open(path, O_RDONLY);
	CHECK(fd >= 0);
	direct(path);
	SAME(foreread_register_client(&c, NULL, NULL, NULL), 0);
	CHECK(foreread_register_region(c, fd, 0, UINT64_MAX) >= 0);
	memset(list, 0, sizeof(list));
	for (i = 0; i < count; i++) {
		list[i].fd = fd;
		list[i].offset = (uint64_t)i * 3 * PAGE;
		list[i].length = PAGE;
	}
	SAME(foreread_request_prefetching(c, list, (size_t)count, FOREREAD_SET), count);
	for (i = 0; i < count; i++) {
		memset(page, 0, PAGE);
		before = counted();
		if (!means[i].read_page(3 * i)) {
			printf("skipped: %s cannot be done here\n", means[i].name);
			continue;
		}
		check_page(3 * i);
		if (counted() != before + (uint64_t)means[i].seen)
			fprintf(stderr, "%s:\n", means[i].name);
		SAME(counted() - before, means[i].seen);
		if (means[i].seen)
			continue;
		SAME(foreread_reading(c, fd, list[i].offset, PAGE), 0);
		CHECK(means[i].read_page(3 * i));
		SAME(counted() - before, 1);
		SAME(foreread_at(c, (uint64_t)i), 0);
	}
	SAME(foreread_unregister_client(c), 0);
	return 0;
}
