/* Every wrong argument has its error code, and does no harm. */
#include "check.h"
#include "foreread.h"
#include <sys/resource.h>

/* In a child: a list is refused if a limit leaves no memory for it. */
static void without_memory(int fd)
{
	static foreread_entry list[100000];
	struct rlimit limit = {0, RLIM_INFINITY};
	foreread_client *c = NULL;
	unsigned long pages;
	FILE *file;
	size_t i;

	for (i = 0; i < sizeof(list) / sizeof(*list); i++)
		list[i].fd = fd;
	SAME(foreread_register_client(&c, NULL, NULL, NULL), 0);
	CHECK(foreread_register_region(c, fd, 0, UINT64_MAX) >= 0);
	file = fopen("/proc/self/statm", "r");
	CHECK(file != NULL && fscanf(file, "%lu", &pages) == 1 && fclose(file) == 0);
	limit.rlim_cur = pages * (unsigned long)sysconf(_SC_PAGESIZE) + (1 << 20);
	CHECK(setrlimit(RLIMIT_AS, &limit) == 0);
	SAME(foreread_request_prefetching(c, list, i, FOREREAD_SET), -ENOMEM);
	limit.rlim_cur = RLIM_INFINITY;
	CHECK(setrlimit(RLIMIT_AS, &limit) == 0);
	SAME(foreread_request_prefetching(c, list, i, FOREREAD_SET), (long)i);
	SAME(foreread_unregister_client(c), 0);
}

/* A descriptor of a file that the user may not open any more. */
static void without_rights(int fd)
{
	foreread_client *c = NULL;

	CHECK(fchmod(fd, 0600) == 0 && setuid(65534) == 0);
	SAME(foreread_register_client(&c, NULL, NULL, NULL), 0);
	SAME(foreread_register_region(c, fd, 0, 100), -EACCES);
	SAME(foreread_unregister_client(c), 0);
}

/* A report that cannot be written, while standard error cannot be written either. */
static void without_report(int fd)
{
	foreread_options options;
	foreread_client *c = NULL;

	(void)fd;
	memset(&options, 0, sizeof(options));
	options.struct_size = sizeof(options);
	options.check = "/no/such/folder/report";
	CHECK(dup2(open("/dev/full", O_WRONLY), STDERR_FILENO) == STDERR_FILENO);
	SAME(foreread_register_client(&c, &options, NULL, NULL), 0);
	SAME(foreread_unregister_client(c), 0);
}

static void in_child(void (*test)(int), int fd)
{
	int status = 0;
	pid_t child = fork();

	CHECK(child >= 0);
	if (child == 0) {
		test(fd);
		_exit(0);
	}
	CHECK(waitpid(child, &status, 0) == child && status == 0);
}

int main(int argc, char **argv)
{
	foreread_client *c = NULL, *gone = NULL;
	foreread_entry entry = {0, 0, 0, 0};
	foreread_options options;
	foreread_stats stats;
	char path[PATH_MAX], *page;
	int fd, other, pipe_fds[2], region, write_only;
	struct {
		foreread_options known;
		uint64_t newer;
	} future;

	CHECK(argc > 1);
	fd = make_file(argv[1], "file", 450);
	other = make_file(argv[1], "other", 450);

	in_child(without_memory, fd);
	in_child(without_report, fd);
	if (geteuid() == 0)
		in_child(without_rights, fd);

	/* Registering. */
	SAME(foreread_register_client(NULL, NULL, NULL, NULL), -EFAULT);
	memset(&options, 0, sizeof(options));
	SAME(foreread_register_client(&c, &options, NULL, NULL), -EINVAL);
	/* A size that was never set, followed by zeros, and then by unmapped memory. */
	page = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	CHECK(page != MAP_FAILED && munmap(page + 4096, 4096) == 0);
	memset(page, 0x7f, sizeof(options.struct_size));
	SAME(foreread_register_client(&c, (foreread_options *)page, NULL, NULL), -E2BIG);
	options.struct_size = sizeof(options);
	options.flags = 1u << 30;
	SAME(foreread_register_client(&c, &options, NULL, NULL), -EINVAL);
	options.flags = FOREREAD_PASSES;
	options.process = 1ul << 32;
	SAME(foreread_register_client(&c, &options, NULL, NULL), -EINVAL);
	memset(&future, 0, sizeof(future));
	future.known.struct_size = sizeof(future);
	future.newer = 1;
	SAME(foreread_register_client(&c, &future.known, NULL, NULL), -E2BIG);
	future.newer = 0;
	SAME(foreread_register_client(&c, &future.known, NULL, NULL), 0);

	/* Values that are no clients. */
	SAME(foreread_register_client(&gone, NULL, NULL, NULL), 0);
	SAME(foreread_unregister_client(gone), 0);
	SAME(foreread_unregister_client(gone), -EINVAL);
	SAME(foreread_unregister_client(NULL), -EINVAL);
	SAME(foreread_unregister_client((foreread_client *)&fd), -EINVAL);
	SAME(foreread_register_region(gone, fd, 0, 100), -EINVAL);
	SAME(foreread_register_file(gone, "/"), -EINVAL);
	SAME(foreread_unregister_region(gone, 0), -EINVAL);
	SAME(foreread_request_prefetching(gone, &entry, 1, FOREREAD_SET), -EINVAL);
	SAME(foreread_at(gone, 0), -EINVAL);
	SAME(foreread_reading(gone, fd, 0, 1), -EINVAL);
	stats.struct_size = sizeof(stats);
	SAME(foreread_get_stats(gone, &stats), -EINVAL);
	SAME(foreread_finish_client(gone, &stats), -EINVAL);
	SAME(foreread_finish_client(gone, NULL), -EINVAL);
	SAME(foreread_finish_client(NULL, &stats), -EINVAL);
	SAME(foreread_finish_client((foreread_client *)&fd, &stats), -EINVAL);

	/* Descriptors and regions. */
	SAME(foreread_register_region(c, -1, 0, 100), -EBADF);
	SAME(foreread_register_region(c, 4000, 0, 100), -EBADF);
	SAME(foreread_register_region(c, INT_MAX, 0, 100), -EBADF);
	SAME(foreread_register_region(c, INT_MIN, 0, 100), -EBADF);
	SAME(foreread_register_region(c, fd, 100, 100), -EINVAL);
	SAME(foreread_register_region(c, fd, 200, 100), -EINVAL);
	SAME(foreread_register_region(c, fd, 450, 500), -ERANGE);
	SAME(foreread_register_region(c, fd, 1 << 20, UINT64_MAX), -ERANGE);
	CHECK(pipe(pipe_fds) == 0);
	SAME(foreread_register_region(c, pipe_fds[0], 0, 100), -ENODEV);
	SAME(foreread_register_region(c, open(argv[1], O_RDONLY), 0, 100), -ENODEV);
	SAME(foreread_register_region(c, open("/dev/zero", O_RDONLY), 0, 100), -ENODEV);
	snprintf(path, sizeof(path), "%s/file", argv[1]);
	write_only = open(path, O_WRONLY);
	CHECK(write_only >= 0);
	SAME(foreread_register_region(c, write_only, 0, 100), -EBADF);
	SAME(foreread_register_region(c, open(path, O_PATH), 0, 100), -EBADF);
	SAME(foreread_unregister_region(c, 0), -ENOENT);
	SAME(foreread_unregister_region(c, -1), -ENOENT);

	/* Files. */
	SAME(foreread_register_file(c, NULL), -EFAULT);
	SAME(foreread_register_file(c, "/no/such/file"), -ENOENT);
	SAME(foreread_register_file(c, ""), -ENOENT);
	SAME(foreread_register_file(c, argv[1]), -ENODEV);
	SAME(foreread_register_region(c, FOREREAD_FIRST_FILE, 0, 100), -EBADF);

	/* Lists. */
	region = foreread_register_region(c, fd, 0, UINT64_MAX);
	CHECK(region >= 0);
	SAME(foreread_request_prefetching(c, NULL, 1, FOREREAD_SET), -EFAULT);
	SAME(foreread_request_prefetching(c, NULL, 0, FOREREAD_CLEAR), 0);
	SAME(foreread_request_prefetching(c, &entry, SIZE_MAX, FOREREAD_SET), -EINVAL);
	entry.fd = fd;
	SAME(foreread_request_prefetching(c, &entry, 1, FOREREAD_SET | FOREREAD_APPEND), -EINVAL);
	SAME(foreread_request_prefetching(c, &entry, 1, 16), -EINVAL);
	entry.flags = 2;
	SAME(foreread_request_prefetching(c, &entry, 1, FOREREAD_SET), -EINVAL);
	entry.flags = 0;
	entry.offset = INT64_MAX;
	entry.length = 1;
	SAME(foreread_request_prefetching(c, &entry, 1, FOREREAD_SET), -EINVAL);
	entry.offset = UINT64_MAX;
	SAME(foreread_request_prefetching(c, &entry, 1, FOREREAD_SET), -EINVAL);
	entry.offset = 0;
	entry.fd = other;
	SAME(foreread_request_prefetching(c, &entry, 1, FOREREAD_SET), -EBADF);
	entry.fd = -1;
	SAME(foreread_request_prefetching(c, &entry, 1, FOREREAD_SET), -EBADF);
	entry.fd = FOREREAD_FIRST_FILE + 5;
	SAME(foreread_request_prefetching(c, &entry, 1, FOREREAD_SET), -EBADF);
	/* An entry past the end of the file is accepted. */
	entry.fd = fd;
	entry.offset = 1 << 20;
	SAME(foreread_request_prefetching(c, &entry, 1, FOREREAD_SET | FOREREAD_DONE), 1);
	SAME(foreread_at(c, 1), -ERANGE);
	SAME(foreread_at(c, 0), 0);

	/* Reports of reads, and statistics. */
	SAME(foreread_reading(c, other, 0, 1), -EBADF);
	SAME(foreread_reading(c, -1, 0, 1), -EBADF);
	SAME(foreread_reading(c, fd, UINT64_MAX, 2), -EINVAL);
	SAME(foreread_get_stats(c, NULL), -EFAULT);
	SAME(foreread_finish_client(c, NULL), -EFAULT);
	stats.struct_size = 4;
	SAME(foreread_get_stats(c, &stats), -EINVAL);
	SAME(foreread_finish_client(c, &stats), -EINVAL);
	memset(&stats, 0x55, sizeof(stats));
	stats.struct_size = 16;
	SAME(foreread_get_stats(c, &stats), 0);
	SAME(stats.accepted, 1);
	CHECK(stats.ahead == 0x5555555555555555u);

	/* A closed descriptor: its entries are refused, and the list stays. */
	CHECK(close(fd) == 0);
	entry.offset = 0;
	SAME(foreread_request_prefetching(c, &entry, 1, FOREREAD_SET), -EBADF);
	SAME(foreread_reading(c, fd, 0, 1), -EBADF);
	SAME(foreread_unregister_region(c, region), 0);
	SAME(foreread_unregister_region(c, region), -ENOENT);

	CHECK(strlen(foreread_strerror(-EBADF)) > 0);
	CHECK(strlen(foreread_strerror(12345)) > 0);
	CHECK(foreread_version()[0] >= '0' && foreread_version()[0] <= '9');
	errno = 42;
	SAME(foreread_unregister_client(c), 0);
	SAME(errno, 42);
	return 0;
}
