/* Only reads through a registered descriptor are matched, and only until it is closed or replaced. */
#include "check.h"
#include "foreread.h"

#include <sys/syscall.h>

static foreread_client *c;
static int asked;

static void callback(void *arg, int marked_fd, int64_t marked_offset, int requested_fd,
		     int64_t requested_offset)
{
	(void)arg, (void)marked_fd, (void)marked_offset, (void)requested_fd;
	(void)requested_offset;
	asked++;
}

static uint64_t counted(void)
{
	foreread_stats stats;

	stats.struct_size = sizeof(stats);
	SAME(foreread_get_stats(c, &stats), 0);
	return stats.listed + stats.unlisted;
}

/* Checks the number of reads that one read counts as. */
#define COUNTED(read_, wanted)                                                             \
	do {                                                                               \
		uint64_t before_ = counted();                                              \
		CHECK((read_) > 0);                                                        \
		SAME(counted() - before_, wanted);                                         \
	} while (0)

static long resident_kib(void)
{
	long size, resident;
	FILE *file = fopen("/proc/self/statm", "r");

	CHECK(file != NULL);
	SAME(fscanf(file, "%ld %ld", &size, &resident), 2);
	CHECK(fclose(file) == 0);
	return resident * (sysconf(_SC_PAGESIZE) / 1024);
}

/* Repeated registrations and removals of regions leak no memory. */
static void come_and_go(int fd)
{
	foreread_client *c = NULL;
	long before = 0;
	int i, region;

	SAME(foreread_register_client(&c, NULL, NULL, NULL), 0);
	for (i = 0; i < 30000; i++) {
		if (i == 10000)
			before = resident_kib();
		region = foreread_register_region(c, fd, 0, 100);
		CHECK(region >= 0);
		SAME(foreread_unregister_region(c, region), 0);
	}
	CHECK(resident_kib() < before + 2048);
	SAME(foreread_unregister_client(c), 0);
}

int main(int argc, char **argv)
{
	char path[PATH_MAX], other_path[PATH_MAX], bytes[16];
	struct iovec vector[2] = {{bytes, 4}, {bytes + 4, 4}};
	int fd, copy, other, region, i;
	FILE *stream;

	CHECK(argc > 1);
	make_path(path, argv[1], "file", 10000);
	make_path(other_path, argv[1], "other", 10000);
	fd = open(path, O_RDONLY);
	CHECK(fd >= 0);
	SAME(foreread_register_client(&c, NULL, callback, NULL), 0);
	region = foreread_register_region(c, fd, 100, 9000);
	CHECK(region >= 0);

	/* Every call; inside the region, at its borders, and outside. */
	COUNTED(pread(fd, bytes, 4, 200), 1);
	COUNTED(pread64(fd, bytes, 4, 200), 1);
	COUNTED(preadv(fd, vector, 2, 200), 1);
	COUNTED(preadv64(fd, vector, 2, 200), 1);
	COUNTED(preadv2(fd, vector, 2, 200, 0), 1);
	COUNTED(preadv64v2(fd, vector, 2, 200, 0), 1);
	COUNTED(read(fd, bytes, 4), 0);
	CHECK(lseek(fd, 95, SEEK_SET) == 95);
	COUNTED(read(fd, bytes, 5), 0);
	COUNTED(read(fd, bytes, 1), 1);
	COUNTED(readv(fd, vector, 2), 1);
	COUNTED(preadv2(fd, vector, 2, -1, 0), 1);
	COUNTED(pread(fd, bytes, 6, 95), 1);
	COUNTED(pread(fd, bytes, 4, 8999), 1);
	COUNTED(pread(fd, bytes, 4, 9000), 0);
	COUNTED(pread(fd, bytes, 1, 9999), 0);
	SAME(pread(fd, bytes, 4, 10000), 0);

	/* Another descriptor of the file, and a duplicate: not registered. */
	other = open(path, O_RDONLY);
	copy = dup(fd);
	COUNTED(pread(other, bytes, 4, 200), 0);
	COUNTED(pread(copy, bytes, 4, 200), 0);

	/* The number refers to another file: by dup2, dup3, close, and by a closing that was not intercepted. */
	CHECK(close(other) == 0);
	other = open(other_path, O_RDONLY);
	CHECK(dup2(other, fd) == fd);
	COUNTED(pread(fd, bytes, 4, 200), 0);
	CHECK(dup2(copy, fd) == fd);
	/* The same file again, but not the registered descriptor. */
	COUNTED(pread(fd, bytes, 4, 200), 0);
	CHECK(foreread_register_region(c, fd, 100, 9000) >= 0);
	COUNTED(pread(fd, bytes, 4, 200), 1);
	CHECK(dup3(other, fd, O_CLOEXEC) == fd);
	COUNTED(pread(fd, bytes, 4, 200), 0);
	CHECK(close(fd) == 0);
	CHECK(open(path, O_RDONLY) == fd);
	COUNTED(pread(fd, bytes, 4, 200), 0);
	CHECK(close(fd) == 0);

	stream = fopen(path, "r");
	CHECK(stream != NULL);
	fd = fileno(stream);
	CHECK(foreread_register_region(c, fd, 100, 9000) >= 0);
	COUNTED(pread(fd, bytes, 4, 200), 1);
	CHECK(fclose(stream) == 0);
	CHECK(dup2(other, fd) == fd);
	COUNTED(pread(fd, bytes, 4, 200), 0);

	/* A closing that nobody can see: nobody is asked about another file's reads, and soon
	 * they are not counted either. */
	fd = open(path, O_RDONLY);
	CHECK(fd >= 0 && foreread_register_region(c, fd, 100, 9000) >= 0);
	COUNTED(pread(fd, bytes, 4, 200), 1);
	CHECK(asked > 0);
	CHECK(syscall(SYS_close, fd) == 0);
	CHECK(syscall(SYS_dup3, other, fd, 0) == fd);
	asked = 0;
	for (i = 0; i < 2000; i++)
		CHECK(pread(fd, bytes, 4, 200) == 4);
	SAME(asked, 0);

	come_and_go(other);

	SAME(foreread_unregister_region(c, region), 0);
	SAME(foreread_unregister_client(c), 0);
	return 0;
}
