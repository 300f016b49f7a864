/* A signal handler that reads a registered descriptor at any time: no deadlock, the right bytes, and no callback
 * from the handler. */
#include "check.h"
#include "foreread.h"
#include <pthread.h>
#include <sys/time.h>

static foreread_client *c;
static int fd, called, refused;
static volatile sig_atomic_t handled, in_handler, wrong;
static pthread_t reader;

static void handler(int signal)
{
	unsigned char byte = 0;
	int saved = errno;
	int code;

	(void)signal;
	in_handler = 1;
	handled++;
	if (pread(fd, &byte, 1, 20000) != 1 || byte != byte_at(20000))
		wrong++;
	code = foreread_at(c, 0);
	if (code == -EDEADLK)
		refused++;
	else if (code != 0 && code != -ERANGE)
		wrong++;
	in_handler = 0;
	errno = saved;
}

static void callback(void *arg, int marked_fd, int64_t marked_offset, int requested_fd,
		     int64_t requested_offset)
{
	foreread_entry entries[16];
	int i;

	(void)arg, (void)marked_fd, (void)marked_offset;
	called++;
	if (in_handler)
		wrong++;
	memset(entries, 0, sizeof(entries));
	for (i = 0; i < 16; i++) {
		entries[i].fd = requested_fd;
		entries[i].offset = (uint64_t)(requested_offset + 64 * i) % 16000;
	}
	SAME(foreread_request_prefetching(c, entries, 16, FOREREAD_SET | FOREREAD_DONE), 16);
}

static int forking;

/* Called before a fork. Such handlers run in reverse order of registration. The library registers its own later, if it
 * is linked as an archive. Then its handler has run by now, and it holds its locks. */
static void prepared(void)
{
	int i;

	for (i = 0; forking && i < 1000; i++)
		CHECK(raise(SIGALRM) == 0);
}

static void __attribute__((constructor(101))) first_of_all(void)
{
	CHECK(pthread_atfork(prepared, NULL, NULL) == 0);
}

int main(int argc, char **argv)
{
	struct sigaction action;
	struct itimerval timer;
	pid_t child;
	int i;

	CHECK(argc > 1);
	fd = make_file(argv[1], "file", 32768);
	SAME(foreread_register_client(&c, NULL, callback, NULL), 0);
	CHECK(foreread_register_region(c, fd, 0, UINT64_MAX) >= 0);
	reader = pthread_self();
	memset(&action, 0, sizeof(action));
	action.sa_handler = handler;
	action.sa_flags = SA_RESTART;
	CHECK(sigaction(SIGALRM, &action, NULL) == 0);
	memset(&timer, 0, sizeof(timer));
	timer.it_interval.tv_usec = 50;
	timer.it_value.tv_usec = 50;
	CHECK(setitimer(ITIMER_REAL, &timer, NULL) == 0);
	/* The program is in malloc, in its reads and in the library, in turns. */
	for (i = 0; handled < 3000 && i < 50000000; i++) {
		void *memory = malloc((size_t)(i % 5000) + 1);

		CHECK(memory != NULL);
		read_byte(fd, i * 61 % 16000);
		free(memory);
	}
	memset(&timer, 0, sizeof(timer));
	CHECK(setitimer(ITIMER_REAL, &timer, NULL) == 0);
	SAME(wrong, 0);
	CHECK(handled >= 3000);
	CHECK(called > 0);
	/* Some signals must have arrived inside the library. */
	CHECK(refused > 0);
	forking = 1;
	child = fork();
	if (child == 0)
		_exit(0);
	forking = 0;
	CHECK(waitpid(child, NULL, 0) == child);
	SAME(wrong, 0);
	SAME(foreread_unregister_client(c), 0);
	return 0;
}
