/* A child has none of the library's threads: calls return an error, reads work unmatched, and a client of its
 * own works. */
#include "check.h"
#include "foreread.h"
#include <pthread.h>

static foreread_client *c;
static int fd, calls;

static void child(int in_callback)
{
	foreread_client *own = NULL;
	foreread_entry entry = {0, 0, 0, 0};
	foreread_stats stats;
	int before = calls;

	entry.fd = fd;
	SAME(foreread_request_prefetching(c, &entry, 1, FOREREAD_SET), -ECHILD);
	SAME(foreread_register_region(c, fd, 0, 100), -ECHILD);
	SAME(foreread_unregister_region(c, 0), -ECHILD);
	SAME(foreread_register_file(c, "/etc/passwd"), -ECHILD);
	SAME(foreread_at(c, 0), -ECHILD);
	SAME(foreread_reading(c, fd, 0, 1), -ECHILD);
	stats.struct_size = sizeof(stats);
	SAME(foreread_get_stats(c, &stats), -ECHILD);
	SAME(foreread_finish_client(c, &stats), -ECHILD);
	SAME(foreread_unregister_client(c), -ECHILD);
	read_byte(fd, 300);
	SAME(calls, before);

	SAME(foreread_register_client(&own, NULL, NULL, NULL), 0);
	CHECK(foreread_register_region(own, fd, 0, 450) >= 0);
	SAME(foreread_request_prefetching(own, &entry, 1, FOREREAD_SET), 1);
	read_byte(fd, 0);
	read_byte(fd, 300);
	SAME(foreread_get_stats(own, &stats), 0);
	/* A callback's own reads are not matched, not even in a child. */
	SAME(stats.listed, !in_callback);
	SAME(stats.unlisted, !in_callback);
	SAME(foreread_at(c, 0), -ECHILD);
	SAME(foreread_unregister_client(own), 0);
	SAME(foreread_unregister_client(own), -EINVAL);
	SAME(calls, before);
}

/* Forks, lets the child check, and checks the child. */
static void forked(int in_callback)
{
	int status = -1;
	pid_t pid = fork();

	CHECK(pid >= 0);
	if (pid == 0) {
		child(in_callback);
#ifdef __SANITIZE_ADDRESS__
		/* Memory of the parent's threads is lost here, which the sanitizer regards as a leak. */
		_exit(0);
#endif
		exit(0);
	}
	CHECK(waitpid(pid, &status, 0) == pid);
	CHECK(WIFEXITED(status));
	SAME(WEXITSTATUS(status), 0);
}

static void callback(void *arg, int marked_fd, int64_t marked_offset, int requested_fd,
		     int64_t requested_offset)
{
	(void)arg, (void)marked_fd, (void)marked_offset, (void)requested_fd;
	(void)requested_offset;
	calls++;
	if (calls == 1)
		forked(1);
}

static int stop;

/* Keeps the library busy on another thread, so that forks find its locks held. */
static void *busy(void *arg)
{
	foreread_entry entries[64];
	int i;

	memset(entries, 0, sizeof(entries));
	for (i = 0; i < 64; i++) {
		entries[i].fd = fd;
		entries[i].offset = (uint64_t)i * 7 % 450;
	}
	while (!__atomic_load_n(&stop, __ATOMIC_SEQ_CST)) {
		foreread_client *brief = NULL;

		SAME(foreread_request_prefetching(c, entries, 64, FOREREAD_SET), 64);
		SAME(foreread_at(c, 10), 0);
		SAME(foreread_register_client(&brief, NULL, NULL, NULL), 0);
		SAME(foreread_unregister_client(brief), 0);
	}
	return arg;
}

int main(int argc, char **argv)
{
	pthread_t thread;
	pid_t pid;
	int i;

	CHECK(argc > 1);
	fd = make_file(argv[1], "file", 450);
	SAME(foreread_register_client(&c, NULL, callback, NULL), 0);
	CHECK(foreread_register_region(c, fd, 0, 450) >= 0);
	forked(0);
	/* From inside the callback. */
	read_byte(fd, 100);
	SAME(calls, 1);
	/* A child made by vfork closes its own descriptor, not ours. */
	pid = vfork();
	if (pid == 0) {
		close(fd);
		_exit(0);
	}
	CHECK(waitpid(pid, NULL, 0) == pid);
	/* It supplies no entries, and is called again after some reads. */
	for (i = 0; i < 8; i++)
		read_byte(fd, 300 + i);
	CHECK(calls > 1);
#ifdef __SANITIZE_ADDRESS__
	/* The sanitizer's own allocator may be locked for ever in such a child. */
	(void)thread, (void)busy;
#else
	CHECK(pthread_create(&thread, NULL, busy, NULL) == 0);
	for (i = 0; i < 40; i++)
		forked(0);
	__atomic_store_n(&stop, 1, __ATOMIC_SEQ_CST);
	CHECK(pthread_join(thread, NULL) == 0);
#endif
	SAME(foreread_unregister_client(c), 0);
	return 0;
}
