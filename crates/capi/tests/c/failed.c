/* After an internal failure of the library, the end of the client returns an error and the account so far. The
 * program continues.
 *
 * The clock fails once on the engine's thread, directly after a sleep: a Rust thread that fails while it falls
 * asleep would end the process. The program's own clock function is found before the C library's. */
#include "check.h"
#include "foreread.h"
#include <dirent.h>
#include <dlfcn.h>
#include <linux/futex.h>
#include <stdarg.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>

enum { PAGE = 4096, PAGES = 1024 };

static const char ENGINE[] = "foreread-engine";
static int stops;

static __thread int has_slept;

/* The C library's function of this name. */
static void *next(const char *name)
{
	void *found = dlsym(RTLD_NEXT, name);

	CHECK(found != NULL);
	return found;
}

long syscall(long number, ...)
{
	long (*real)(long, ...) = (long (*)(long, ...))next("syscall");
	long a[6], result;
	va_list list;
	int i;

	va_start(list, number);
	for (i = 0; i < 6; i++)
		a[i] = va_arg(list, long);
	va_end(list);
	result = real(number, a[0], a[1], a[2], a[3], a[4], a[5]);
	/* A sleep has a time limit; the wait for a lock has none. */
	if (number == SYS_futex && (a[1] & FUTEX_CMD_MASK) == FUTEX_WAIT_BITSET && a[3] != 0)
		has_slept = 1;
	return result;
}

int clock_gettime(clockid_t clock, struct timespec *now)
{
	int (*real)(clockid_t, struct timespec *) =
		(int (*)(clockid_t, struct timespec *))next("clock_gettime");
	char name[16] = "";
	int slept = has_slept;

	has_slept = 0;
	if (slept && __atomic_load_n(&stops, __ATOMIC_RELAXED) && prctl(PR_GET_NAME, name) == 0 &&
	    strcmp(name, ENGINE) == 0 && __atomic_exchange_n(&stops, 0, __ATOMIC_RELAXED)) {
		errno = EINVAL;
		return -1;
	}
	return real(clock, now);
}

/* True if a thread with the engine's name runs. */
static int engine_runs(void)
{
	char path[300], name[32];
	struct dirent *thread;
	DIR *threads = opendir("/proc/self/task");
	int found = 0;

	CHECK(threads != NULL);
	while ((thread = readdir(threads)) != NULL) {
		FILE *file;

		snprintf(path, sizeof(path), "/proc/self/task/%s/comm", thread->d_name);
		file = fopen(path, "r");
		if (file == NULL)
			continue;
		if (fgets(name, sizeof(name), file) != NULL)
			found |= strncmp(name, ENGINE, sizeof(ENGINE) - 1) == 0;
		fclose(file);
	}
	closedir(threads);
	return found;
}

int main(int argc, char **argv)
{
	static foreread_entry list[PAGES / 2];
	foreread_client *c = NULL;
	foreread_stats stats;
	char path[PATH_MAX];
	int fd, i;

	CHECK(argc > 1);
	make_path(path, argv[1], "file", PAGES * PAGE);
	if (!evict(path)) {
		fprintf(stderr, "files in this directory cannot be cold\n");
		return 77;
	}
	fd = open(path, O_RDONLY);
	CHECK(fd >= 0);
	for (i = 0; i < PAGES / 2; i++) {
		list[i].fd = fd;
		list[i].offset = (uint64_t)(i * 101 % (PAGES / 2) * 2) * PAGE;
		list[i].length = PAGE;
	}
	SAME(foreread_register_client(&c, NULL, NULL, NULL), 0);
	CHECK(foreread_register_region(c, fd, 0, UINT64_MAX) >= 0);
	SAME(foreread_request_prefetching(c, list, PAGES / 2, FOREREAD_SET), PAGES / 2);
	stats.struct_size = sizeof(stats);
	for (i = 0; i < 10000; i++) {
		SAME(foreread_get_stats(c, &stats), 0);
		if (stats.issued > 0)
			break;
		usleep(1000);
	}
	CHECK(stats.issued > 0);

	__atomic_store_n(&stops, 1, __ATOMIC_RELAXED);
	for (i = 0; engine_runs(); i++) {
		CHECK(i < 10000);
		usleep(1000);
	}
	read_byte(fd, (off_t)list[0].offset);
	SAME(foreread_at(c, 1), 0);
	SAME(foreread_get_stats(c, &stats), 0);
	memset(&stats, 0, sizeof(stats));
	stats.struct_size = sizeof(stats);
	SAME(foreread_finish_client(c, &stats), -ENOTRECOVERABLE);
	CHECK(stats.issued > 0 && stats.listed >= 2);
	SAME(foreread_get_stats(c, &stats), -EINVAL);
	read_byte(fd, (off_t)list[1].offset);

	SAME(foreread_register_client(&c, NULL, NULL, NULL), 0);
	SAME(foreread_unregister_client(c), 0);
	return 0;
}
