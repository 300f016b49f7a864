/* A thread cancelled in a read of a registered descriptor ends as ever, and the library goes on. */
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

int main(int argc, char **argv)
{
	foreread_client *c = NULL;
	int i;

	CHECK(argc > 1);
	fd = make_file(argv[1], "file", 1000);
	SAME(foreread_register_client(&c, NULL, NULL, NULL), 0);
	CHECK(foreread_register_region(c, fd, 0, UINT64_MAX) >= 0);
	for (i = 0; i < 100; i++) {
		pthread_t thread;
		void *result = NULL;

		CHECK(pthread_create(&thread, NULL, reader, NULL) == 0);
		CHECK(pthread_join(thread, &result) == 0);
		CHECK(result == PTHREAD_CANCELED);
	}
	read_byte(fd, 20);
	SAME(foreread_unregister_client(c), 0);
	return 0;
}
