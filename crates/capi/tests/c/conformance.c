/* Calls every intercepted function with null, closed, foreign, wrong-kind and hostile arguments, in every state of the
 * library. Prints the effects of each call: its result, errno, the memory it wrote, the cursor, and the table of
 * descriptors. The output must be the same with and without the library. Compiled with PLAIN, the program does not use it. */
#include "check.h"
#ifndef PLAIN
#include "foreread.h"
#endif

#include <stdarg.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>

/* Functions that programs compiled with _FORTIFY_SOURCE call. */
ssize_t __read_chk(int fd, void *buffer, size_t size, size_t space);
ssize_t __pread_chk(int fd, void *buffer, size_t size, off_t offset, size_t space);
ssize_t __pread64_chk(int fd, void *buffer, size_t size, off64_t offset, size_t space);

#define LENGTH(array) (sizeof(array) / sizeof((array)[0]))
#define FILE_BYTES 5000
#define BUFFER 8192
/* errno before each call: a value that no call sets. */
#define BEFORE 4711

static unsigned char *buffer;
/* The last bytes before unreadable memory. */
static unsigned char *edge;
static void *nowhere, *unreadable, *unwritable;
static const char *state;

/* ---- descriptors of every kind -------------------------------------------------------------- */

enum { FILE_, OTHER, EMPTY, FOLDER, WRITE_ONLY, PATH_ONLY, NULL_DEVICE, PIPE, PIPE_END, SOCKET, KINDS };
static int open_[KINDS];
/* Numbers that are no open descriptors. */
static const int numbers[] = {-1, 4000, 1 << 20, (1 << 20) - 1, INT_MAX, INT_MIN};
static int descriptors[KINDS + LENGTH(numbers)];

static void open_all(const char *folder)
{
	char path[PATH_MAX];
	int pair[2];
	size_t i;

	open_[FILE_] = make_file(folder, "file", FILE_BYTES);
	open_[OTHER] = make_file(folder, "other", 100);
	open_[EMPTY] = make_file(folder, "empty", 0);
	open_[FOLDER] = open(folder, O_RDONLY | O_DIRECTORY);
	snprintf(path, sizeof(path), "%s/file", folder);
	open_[WRITE_ONLY] = open(path, O_WRONLY);
	open_[PATH_ONLY] = open(path, O_PATH);
	open_[NULL_DEVICE] = open("/dev/null", O_RDWR);
	CHECK(pipe2(pair, O_NONBLOCK) == 0);
	open_[PIPE] = pair[0];
	open_[PIPE_END] = pair[1];
	CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair) == 0);
	open_[SOCKET] = pair[0];
	for (i = 0; i < KINDS; i++) {
		CHECK(open_[i] >= 0);
		descriptors[i] = open_[i];
	}
	for (i = 0; i < LENGTH(numbers); i++)
		descriptors[KINDS + i] = numbers[i];
}

static void close_all(void)
{
	int fd;

	for (fd = 3; fd < 256; fd++)
		close(fd);
}

/* A hash of the table of descriptors: its numbers and their flags. */
static unsigned int table(void)
{
	unsigned int sum = 0;
	int fd;

	for (fd = 0; fd < 256; fd++)
		sum = sum * 31 + (unsigned int)fcntl(fd, F_GETFD) * 7 +
		      (unsigned int)fcntl(fd, F_GETFL);
	return sum;
}

/* ---- one call ------------------------------------------------------------------------------- */

static void prepare(void)
{
	memset(buffer, 0xa5, BUFFER);
	lseek(open_[FILE_], 10, SEEK_SET);
	errno = BEFORE;
}

static __attribute__((format(printf, 2, 3))) void tell(long result, const char *call, ...)
{
	int saved = errno;
	unsigned int sum = 0;
	va_list arguments;
	size_t i;

	for (i = 0; i < BUFFER; i++)
		sum = sum * 31 + buffer[i];
	printf("%s: ", state);
	va_start(arguments, call);
	vprintf(call, arguments);
	va_end(arguments);
	printf(" = %ld, errno %d, memory %08x, at %lld\n", result, saved, sum,
	       (long long)lseek(open_[FILE_], 0, SEEK_CUR));
}

/* Prints the table of descriptors after some calls. */
static void tell_table(const char *calls, int fd)
{
	printf("%s: descriptors after %s of %d: %08x\n", state, calls, fd, table());
}

#define CALL(result, ...)                                                                  \
	do {                                                                               \
		long result_;                                                              \
		prepare();                                                                 \
		result_ = (long)(result);                                                  \
		tell(result_, __VA_ARGS__);                                                \
	} while (0)

/* Through pointers, because the compiler would warn of wrong arguments. */
static ssize_t (*volatile do_read)(int, void *, size_t) = read;
static ssize_t (*volatile do_pread)(int, void *, size_t, off_t) = pread;
static ssize_t (*volatile do_pread64)(int, void *, size_t, off64_t) = pread64;
static ssize_t (*volatile do_readv)(int, const struct iovec *, int) = readv;
static ssize_t (*volatile do_preadv)(int, const struct iovec *, int, off_t) = preadv;
static ssize_t (*volatile do_preadv64)(int, const struct iovec *, int, off64_t) = preadv64;
static ssize_t (*volatile do_preadv2)(int, const struct iovec *, int, off_t, int) = preadv2;
static ssize_t (*volatile do_preadv64v2)(int, const struct iovec *, int, off64_t, int) = preadv64v2;
static ssize_t (*volatile do_read_chk)(int, void *, size_t, size_t) = __read_chk;
static ssize_t (*volatile do_pread_chk)(int, void *, size_t, off_t, size_t) = __pread_chk;
static ssize_t (*volatile do_pread64_chk)(int, void *, size_t, off64_t, size_t) = __pread64_chk;
static int (*volatile do_close)(int) = close;
static int (*volatile do_dup2)(int, int) = dup2;
static int (*volatile do_dup3)(int, int, int) = dup3;
static int (*volatile do_fadvise)(int, off_t, off_t, int) = posix_fadvise;
static int (*volatile do_fadvise64)(int, off64_t, off64_t, int) = posix_fadvise64;

static const off_t offsets[] = {0, 4990, FILE_BYTES, -1, LLONG_MIN, LLONG_MAX};

static void reads(int fd)
{
	/* Sizes beyond the buffer do no harm, because the file is smaller than the buffer. */
	struct {
		void *to;
		size_t size;
	} into[] = {
		{buffer, 0},	    {buffer, 100},     {buffer, BUFFER},
		{buffer, SSIZE_MAX}, {buffer, SIZE_MAX}, {edge, 100},
		{NULL, 0},	    {NULL, 100},       {nowhere, 100},
		{unreadable, 100},  {unwritable, 100},
	};
	size_t i, j;

	for (i = 0; i < LENGTH(into); i++) {
		void *to = into[i].to;
		size_t size = into[i].size;

		CALL(do_read(fd, to, size), "read %d %zu", fd, i);
		CALL(do_read_chk(fd, to, size, size), "__read_chk %d %zu", fd, i);
		for (j = 0; j < LENGTH(offsets); j++) {
			off_t at = offsets[j];

			CALL(do_pread(fd, to, size, at), "pread %d %zu %zu", fd, i, j);
			CALL(do_pread64(fd, to, size, at), "pread64 %d %zu %zu", fd, i, j);
			CALL(do_pread_chk(fd, to, size, at, size), "__pread_chk %d %zu %zu", fd, i, j);
			CALL(do_pread64_chk(fd, to, size, at, size), "__pread64_chk %d %zu %zu", fd, i, j);
		}
	}
}

static void vectors(int fd)
{
	static struct iovec many[1025];
	struct iovec good[3] = {{buffer, 100}, {NULL, 0}, {buffer + 100, 4000}};
	struct iovec bad[2] = {{buffer, 10}, {nowhere, 10}};
	struct iovec huge[2] = {{buffer, SSIZE_MAX}, {buffer, SSIZE_MAX}};
	/* Its second element is in unreadable memory. */
	struct iovec *half = (struct iovec *)(void *)(edge + 100 - sizeof(struct iovec));
	const struct {
		const struct iovec *parts;
		int count;
	} from[] = {
		{good, 3},    {good, 0},	{good, -1},    {good, INT_MIN}, {many, 1024},
		{many, 1025}, {many, INT_MAX}, {bad, 2},      {bad + 1, 1},	{huge, 2},
		{NULL, 0},    {NULL, 3},	{nowhere, 2}, {unreadable, 2}, {half, 2},
	};
	static const int flags[] = {0, 0x40000000, -1};
	size_t i, j, k;

	for (i = 0; i < LENGTH(many); i++)
		many[i] = (struct iovec){buffer + i, 1};
	*half = good[0];
	for (i = 0; i < LENGTH(from); i++) {
		const struct iovec *parts = from[i].parts;
		int count = from[i].count;

		CALL(do_readv(fd, parts, count), "readv %d %zu", fd, i);
		for (j = 0; j < LENGTH(offsets); j++) {
			off_t at = offsets[j];

			CALL(do_preadv(fd, parts, count, at), "preadv %d %zu %zu", fd, i, j);
			CALL(do_preadv64(fd, parts, count, at), "preadv64 %d %zu %zu", fd, i, j);
			for (k = 0; k < LENGTH(flags); k++) {
				CALL(do_preadv2(fd, parts, count, at, flags[k]), "preadv2 %d %zu %zu %zu",
				     fd, i, j, k);
				CALL(do_preadv64v2(fd, parts, count, at, flags[k]),
				     "preadv64v2 %d %zu %zu %zu", fd, i, j, k);
			}
		}
	}
}

static void advises(int fd)
{
	static const int advice[] = {0, 1, 2, 3, 4, 5, 6, 77, -1, INT_MIN};
	size_t i, j;

	for (i = 0; i < LENGTH(advice); i++)
		for (j = 0; j < LENGTH(offsets); j++) {
			CALL(do_fadvise(fd, offsets[j], 10, advice[i]), "posix_fadvise %d %zu %zu", fd, i, j);
			CALL(do_fadvise64(fd, 0, offsets[j], advice[i]), "posix_fadvise64 %d %zu %zu", fd, i, j);
		}
}

/* A free number. */
#define FREE 200

static void copies(int fd)
{
	const int to[] = {FREE, FREE, fd, -1, INT_MIN, INT_MAX, 1 << 30, open_[OTHER]};
	static const int flags[] = {0, O_CLOEXEC, O_NONBLOCK, -1};
	size_t i, j;

	for (i = 0; i < LENGTH(to); i++) {
		CALL(do_dup2(fd, to[i]), "dup2 %d %zu", fd, i);
		for (j = 0; j < LENGTH(flags); j++)
			CALL(do_dup3(fd, to[i], flags[j]), "dup3 %d %zu %zu", fd, i, j);
		tell_table("copies", fd);
	}
	CALL(do_close(FREE), "close of a copy of %d", fd);
	CALL(do_close(FREE), "close of it again");
}

/* A read into less space than its size ends the program, here a child. */
static void overflows(int which)
{
	int status = 0;
	pid_t child;

	fflush(stdout);
	child = fork();
	CHECK(child >= 0);
	if (child == 0) {
		const struct rlimit none = {0, 0};
		int error = open("/dev/null", O_WRONLY);

		setrlimit(RLIMIT_CORE, &none);
		signal(SIGABRT, SIG_DFL);
		dup2(error, STDERR_FILENO);
		if (which == 0)
			do_read_chk(open_[FILE_], buffer, 100, 50);
		else if (which == 1)
			do_pread_chk(open_[FILE_], buffer, 100, 0, 50);
		else
			do_pread64_chk(open_[FILE_], buffer, 100, 0, 50);
		_exit(0);
	}
	CHECK(waitpid(child, &status, 0) == child);
	printf("%s: overflow %d: signal %d\n", state, which,
	       WIFSIGNALED(status) ? WTERMSIG(status) : 0);
}

static void call_all(void)
{
	size_t i;

	for (i = 0; i < LENGTH(descriptors); i++) {
		int fd = descriptors[i];

		reads(fd);
		vectors(fd);
		advises(fd);
		tell_table("reads", fd);
		copies(fd);
	}
	for (i = 0; i < 3; i++)
		overflows((int)i);
	/* The number becomes another file's, and is closed then. */
	CALL(do_dup2(open_[EMPTY], open_[FILE_]), "dup2 onto the file");
	CALL(do_read(open_[FILE_], buffer, 100), "read of what it is now");
	for (i = 0; i < LENGTH(descriptors); i++) {
		CALL(do_close(descriptors[i]), "close %d", descriptors[i]);
		CALL(do_close(descriptors[i]), "close %d again", descriptors[i]);
		CALL(do_read(descriptors[i], buffer, 100), "read of closed %d", descriptors[i]);
		tell_table("close", descriptors[i]);
	}
	fflush(stdout);
}

/* ---- the states ----------------------------------------------------------------------------- */

#ifndef PLAIN
static foreread_client *client;
static int called;

static void answers_nothing(void *arg, int marked_fd, int64_t marked, int fd, int64_t offset)
{
	char byte;

	(void)arg, (void)marked_fd, (void)marked, (void)offset;
	/* The callback may change errno. */
	CHECK(pread(fd, &byte, 1, 0) <= 1);
	errno = EXDEV;
}

static void calls_all(void *arg, int marked_fd, int64_t marked, int fd, int64_t offset)
{
	(void)arg, (void)marked_fd, (void)marked, (void)fd, (void)offset;
	if (called++ == 0)
		call_all();
}

static void begin(foreread_callback callback)
{
	SAME(foreread_register_client(&client, NULL, callback, NULL), 0);
}

static void add_region(void)
{
	CHECK(foreread_register_region(client, open_[FILE_], 0, UINT64_MAX) >= 0);
	CHECK(foreread_register_region(client, open_[OTHER], 10, 20) >= 0);
}

static void add_list(void)
{
	foreread_entry entries[3] = {{0, 0, 4990, 10}, {0, 0, 0, 100}, {0, 0, 2000, 50}};
	size_t i;

	for (i = 0; i < LENGTH(entries); i++)
		entries[i].fd = open_[FILE_];
	SAME(foreread_request_prefetching(client, entries, LENGTH(entries), FOREREAD_SET), 3);
}

static void end(void)
{
	SAME(foreread_unregister_client(client), 0);
	client = NULL;
}
#define WITH(...) __VA_ARGS__
#else
#define WITH(...)
#endif

static void on_signal(int number)
{
	(void)number;
	call_all();
}

static void in_child(void)
{
	int status = 0;
	pid_t child = fork();

	CHECK(child >= 0);
	if (child == 0) {
		call_all();
		_exit(0);
	}
	CHECK(waitpid(child, &status, 0) == child);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

/* A state, in which all descriptors are open; they are closed after it. */
#define STATE(name, before, act, after)                                                    \
	do {                                                                               \
		state = name;                                                              \
		open_all(folder);                                                          \
		before;                                                                    \
		act;                                                                       \
		after;                                                                     \
		close_all();                                                               \
	} while (0)

static void make_memory(void)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	unsigned char *pages = mmap(NULL, 8 * page, PROT_READ | PROT_WRITE,
				    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	CHECK(pages != MAP_FAILED);
	buffer = pages;
	CHECK(4 * page >= BUFFER + page);
	edge = pages + 5 * page - 100;
	unreadable = pages + 5 * page;
	CHECK(mprotect(unreadable, page, PROT_NONE) == 0);
	unwritable = pages + 6 * page;
	CHECK(mprotect(unwritable, page, PROT_READ) == 0);
	nowhere = (void *)8;
}

#ifndef __SANITIZE_ADDRESS__
/* Before any constructor, the library's own included. */
static void first(int argc, char **argv)
{
	const char *folder = argc > 1 ? argv[1] : ".";

	make_memory();
	close_all();
	STATE("before the constructors", , call_all(), );
}

static void (*const before_all)(int, char **) __attribute__((used, section(".preinit_array"))) = first;
#endif

int main(int argc, char **argv)
{
	const char *folder;

	CHECK(argc > 1);
	folder = argv[1];
	make_memory();
	close_all();
	STATE("no client", , call_all(), );
	STATE("a client", WITH(begin(NULL)), call_all(), WITH(end()));
	STATE("a region", WITH(begin(NULL); add_region()), call_all(), WITH(end()));
	STATE("a list", WITH(begin(NULL); add_region(); add_list()), call_all(), WITH(end()));
	STATE("a callback", WITH(begin(answers_nothing); add_region()), call_all(), WITH(end()));
	STATE("a child", WITH(begin(NULL); add_region(); add_list()), in_child(), WITH(end()));
	signal(SIGUSR1, on_signal);
	STATE("a handler", WITH(begin(answers_nothing); add_region()), raise(SIGUSR1), WITH(end()));
#ifdef PLAIN
	STATE("in the callback", , call_all(), );
#else
	{
		char byte;

		STATE("in the callback", begin(calls_all); add_region(),
		      CHECK(pread(open_[FILE_], &byte, 1, 0) <= 1), end());
		CHECK(called > 0);
	}
#endif
	STATE("a client no more", WITH(begin(NULL); add_region(); end()), call_all(), );
	return 0;
}
