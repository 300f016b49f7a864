/* Prints the effects of every kind of read: bytes, results and errno. The output must be the same with and
 * without the library. Compiled with PLAIN, the program does not use it. */
#include "check.h"
#ifndef PLAIN
#include "foreread.h"
#endif

static unsigned char buffer[70000];
/* Volatile, because the compiler would warn of these values. */
static void *volatile nowhere = (void *)8;
static volatile int minus_one = -1;
static volatile size_t very_much = (size_t)SSIZE_MAX;

static void tell(const char *what, ssize_t result)
{
	int saved = errno;
	unsigned int sum = 0;
	ssize_t i;

	for (i = 0; i < result; i++)
		sum = sum * 31 + buffer[i];
	printf("%s: %zd, errno %d, sum %08x\n", what, result, result < 0 ? saved : 0, sum);
	memset(buffer, 0, sizeof(buffer));
	errno = 0;
}

int main(int argc, char **argv)
{
	struct iovec vector[3] = {{buffer, 100}, {buffer + 100, 0}, {buffer + 100, 5000}};
	struct iovec bad[2] = {{buffer, 10}, {NULL, 10}};
	struct iovec many[1025];
	char path[PATH_MAX];
	int fd, i, pipes[2];
#ifndef PLAIN
	foreread_client *c = NULL;
#endif

	bad[1].iov_base = nowhere;
	CHECK(argc > 1);
	make_path(path, argv[1], "file", 65000);
	fd = open(path, O_RDONLY);
	CHECK(fd >= 0);
#ifndef PLAIN
	{
		foreread_entry entry = {0, 0, 0, 0};

		entry.fd = fd;
		entry.length = 65000;
		SAME(foreread_register_client(&c, NULL, NULL, NULL), 0);
		CHECK(foreread_register_region(c, fd, 0, UINT64_MAX) >= 0);
		SAME(foreread_request_prefetching(c, &entry, 1, FOREREAD_SET), 1);
	}
#endif
	errno = 0;
	tell("read", read(fd, buffer, 1000));
	tell("read on", read(fd, buffer, 5000));
	tell("readv", readv(fd, vector, 3));
	tell("pread", pread(fd, buffer, 4096, 8192));
	tell("pread across the end", pread(fd, buffer, 4096, 64000));
	tell("pread past the end", pread(fd, buffer, 4096, 70000));
	tell("pread of nothing", pread(fd, buffer, 0, 0));
	tell("pread at a negative offset", pread(fd, buffer, 10, -5));
	tell("pread to nowhere", pread(fd, nowhere, 10, 0));
	tell("pread of very much", pread(fd, buffer, very_much, 65000));
	tell("preadv", preadv(fd, vector, 3, 30000));
	tell("preadv to nowhere", preadv(fd, bad + 1, 1, 0));
	tell("preadv half to nowhere", preadv(fd, bad, 2, 0));
	tell("preadv of a vector that is nowhere", preadv(fd, (struct iovec *)nowhere, 2, 0));
	tell("preadv of no vector", preadv(fd, NULL, 0, 0));
	tell("preadv of minus one", preadv(fd, vector, minus_one, 0));
	for (i = 0; i < 1025; i++) {
		many[i].iov_base = buffer + i;
		many[i].iov_len = 1;
	}
	tell("readv of many", readv(fd, many, 1024));
	tell("readv of too many", readv(fd, many, 1025));
	tell("preadv2", preadv2(fd, vector, 3, 100, 0));
	tell("preadv2 at the cursor", preadv2(fd, vector, 3, -1, 0));
	tell("preadv2 with an unknown flag", preadv2(fd, vector, 3, 0, 1 << 30));
	printf("cursor %lld\n", (long long)lseek(fd, 0, SEEK_CUR));
	tell("read of a closed descriptor", read(4000, buffer, 10));
	tell("read of minus one", read(-1, buffer, 10));
	CHECK(pipe(pipes) == 0 && write(pipes[1], "hello", 5) == 5);
	tell("read of a pipe", read(pipes[0], buffer, 100));
	tell("pread of a pipe", pread(pipes[0], buffer, 100, 0));
	printf("dup2 %d\n", dup2(pipes[0], 50));
	printf("dup2 of itself %d\n", dup2(50, 50));
	printf("dup2 of a closed one %d\n", dup2(4000, 50));
	printf("dup3 of itself %d\n", dup3(50, 50, 0));
	printf("errno %d\n", errno);
	printf("close %d\n", close(50));
	printf("close again %d\n", close(50));
	printf("errno %d\n", errno);
	printf("fadvise %d, of a pipe %d\n", posix_fadvise(fd, 0, 0, POSIX_FADV_SEQUENTIAL),
	       posix_fadvise(pipes[0], 0, 0, POSIX_FADV_NORMAL));
	/* Files that shrink and grow under the region. */
	CHECK(truncate(path, 500) == 0);
	tell("read of what was cut off", pread(fd, buffer, 1000, 400));
	CHECK(truncate(path, 3000) == 0);
	tell("read of what has grown", pread(fd, buffer, 1000, 400));
	errno = 77;
	if (pread(fd, buffer, 10, 0) == 10)
		printf("errno after a success %d\n", errno);
#ifndef PLAIN
	/* The sanitizer regards a thread that is just starting at the program's end as a leak. */
	SAME(foreread_unregister_client(c), 0);
#endif
	return 0;
}
