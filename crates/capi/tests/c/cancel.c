/* A thread that is cancelled in a read of a registered descriptor ends as without the library. A thread that
 * is cancelled in a call or in the callback ends after it. The library continues. */
#include "check.h"
#include "foreread.h"
#include <pthread.h>

static int fd;

static void *reader(void *arg)
{
	char byte;

	CHECK(pthread_cancel(pthread_self()) == 0);
	(void)!pread(fd, &byte, 1, 10);
	return arg;
}

/* Not on the stack of a thread that is cancelled: the address sanitizer would regard it as still in use. */
static foreread_client *own;
static int called;
static char byte;

static void callback(void *arg, int marked_fd, int64_t marked_offset, int requested_fd,
		     int64_t requested_offset)
{
	(void)arg, (void)marked_fd, (void)marked_offset;
	/* A cancellation point. */
	SAME(pread(requested_fd, &byte, 1, requested_offset), 1);
	called++;
}

static void *caller(void *arg)
{
	CHECK(pthread_cancel(pthread_self()) == 0);
	SAME(foreread_register_client(&own, NULL, callback, NULL), 0);
	CHECK(foreread_register_region(own, fd, 0, UINT64_MAX) >= 0);
	SAME(foreread_reading(own, fd, 10, 1), 0);
	SAME(called, 1);
	SAME(foreread_unregister_client(own), 0);
	(void)!pread(fd, &byte, 1, 10);
	return arg;
}

static void *asked(void *arg)
{
	SAME(foreread_register_client(&own, NULL, callback, NULL), 0);
	CHECK(foreread_register_region(own, fd, 0, UINT64_MAX) >= 0);
	CHECK(pthread_cancel(pthread_self()) == 0);
	(void)!pread(fd, &byte, 1, 10);
	return arg;
}

static void cancelled(void *(*body)(void *))
{
	pthread_t thread;
	void *result = NULL;

	CHECK(pthread_create(&thread, NULL, body, NULL) == 0);
	CHECK(pthread_join(thread, &result) == 0);
	CHECK(result == PTHREAD_CANCELED);
}

int main(int argc, char **argv)
{
	foreread_client *c = NULL;
	int i;

	CHECK(argc > 1);
	fd = make_file(argv[1], "file", 1000);
	SAME(foreread_register_client(&c, NULL, NULL, NULL), 0);
	CHECK(foreread_register_region(c, fd, 0, UINT64_MAX) >= 0);
	for (i = 0; i < 100; i++)
		cancelled(reader);
	cancelled(caller);
	cancelled(asked);
	SAME(called, 2);
	read_byte(fd, 20);
	SAME(foreread_unregister_client(c), 0);
	return 0;
}
