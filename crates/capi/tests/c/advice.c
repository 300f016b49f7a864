/* The kernel's read-ahead is off on the program's descriptor only while the list reads its file in no order.
 * Advice of the program itself stays. */
#include "check.h"
#include "foreread.h"
#include <sys/mman.h>
#include <sys/syscall.h>

enum { PAGE = 4096, PAGES = 1024 };

static char path[PATH_MAX];
static char page[PAGE];

static int resident(int fd, int number)
{
	unsigned char answer = 0;
	void *map = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, fd, (off_t)number * PAGE);

	CHECK(map != MAP_FAILED);
	CHECK(mincore(map, PAGE, &answer) == 0);
	CHECK(munmap(map, PAGE) == 0);
	return answer & 1;
}

/* True if two consecutive reads start the kernel's read-ahead, whose pages may still be on their way. */
static int reads_ahead(int fd, int number)
{
	int i;

	CHECK(!resident(fd, number + 2));
	CHECK(pread(fd, page, PAGE, (off_t)number * PAGE) == PAGE);
	CHECK(pread(fd, page, PAGE, (off_t)(number + 1) * PAGE) == PAGE);
	for (i = 0; i < 20 && !resident(fd, number + 2); i++)
		usleep(5000);
	return resident(fd, number + 2);
}

static int cold(void)
{
	int fd = open(path, O_RDONLY);

	CHECK(fd >= 0);
	CHECK(fsync(fd) == 0);
	CHECK(posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED) == 0);
	return fd;
}

/* A client whose list reads every other page of the first half of the file, by this stride. The program has
 * read a quarter of the list. */
static foreread_client *under_way(int fd, int stride)
{
	static foreread_entry list[PAGES / 4];
	foreread_client *c = NULL;
	int i;

	memset(list, 0, sizeof(list));
	for (i = 0; i < PAGES / 4; i++) {
		list[i].fd = fd;
		list[i].offset = (uint64_t)(i * stride % (PAGES / 4) * 2) * PAGE;
		list[i].length = PAGE;
	}
	SAME(foreread_register_client(&c, NULL, NULL, NULL), 0);
	CHECK(foreread_register_region(c, fd, 0, UINT64_MAX) >= 0);
	SAME(foreread_request_prefetching(c, list, PAGES / 4, FOREREAD_SET), PAGES / 4);
	for (i = 0; i < PAGES / 16; i++)
		CHECK(pread(fd, page, PAGE, (off_t)list[i].offset) == PAGE);
	return c;
}

/* After any call that closes the descriptor, the kernel reads ahead for other descriptors of the opening. */
static void closed_by(int (*close_it)(int), int number)
{
	int fd = cold(), other = dup(fd);
	foreread_client *c = under_way(fd, 101);

	CHECK(other >= 0 && !reads_ahead(other, number));
	CHECK(close_it(fd) >= 0);
	CHECK(reads_ahead(other, number + 8));
	SAME(foreread_unregister_client(c), 0);
	CHECK(close(fd) == 0 || errno == EBADF);
	CHECK(close(other) == 0);
}

static int by_dup2(int fd)
{
	return dup2(STDIN_FILENO, fd);
}

static int by_dup3(int fd)
{
	return dup3(STDIN_FILENO, fd, O_CLOEXEC);
}

/* The same after the end of a process. */
static void ended(void)
{
	int fd = cold(), status = -1;
	pid_t child = fork();

	CHECK(child >= 0);
	if (child == 0) {
		under_way(fd, 101);
		CHECK(!reads_ahead(fd, 600));
		exit(0);
	}
	CHECK(waitpid(child, &status, 0) == child && status == 0);
	CHECK(reads_ahead(fd, 900));
	CHECK(close(fd) == 0);
}

/* Advice ends with its descriptor, before the first client of a process, too: the next file with the number is
 * not taken for advised. */
static void advised_and_closed_by(int (*close_it)(int))
{
	int fd = cold(), status = -1;
	pid_t child;

	CHECK(posix_fadvise(fd, 0, 0, POSIX_FADV_NORMAL) == 0);
	child = fork();
	CHECK(child >= 0);
	if (child == 0) {
		int other;

		CHECK(close_it(fd) >= 0);
		other = cold();
		CHECK(other == fd || syscall(SYS_dup3, other, fd, 0) == fd);
		under_way(fd, 101);
		CHECK(!reads_ahead(fd, 600));
		exit(0);
	}
	CHECK(waitpid(child, &status, 0) == child && status == 0);
	CHECK(close(fd) == 0);
}

/* A child that runs in the program's memory (vfork) closes a descriptor of its own. */
static void advised_and_closed_in_a_child(void)
{
	int fd = cold(), status = -1;
	foreread_client *c;
	pid_t child;

	CHECK(posix_fadvise(fd, 0, 0, POSIX_FADV_NORMAL) == 0);
	child = vfork();
	CHECK(child >= 0);
	if (child == 0)
		_exit(close(fd));
	CHECK(waitpid(child, &status, 0) == child && status == 0);
	c = under_way(fd, 101);
	CHECK(reads_ahead(fd, 600));
	SAME(foreread_unregister_client(c), 0);
	CHECK(close(fd) == 0);
}

int main(int argc, char **argv)
{
	foreread_client *c;
	int fd, i;

	CHECK(argc > 1);
	make_path(path, argv[1], "file", PAGES * PAGE);
	fd = cold();
	if (resident(fd, 800)) {
		fprintf(stderr, "files in this directory cannot be cold\n");
		return 77;
	}
	if (!reads_ahead(fd, 600)) {
		fprintf(stderr, "the kernel's read-ahead is off for this device\n");
		return 77;
	}
	CHECK(close(fd) == 0);

	/* The first client of this process is the one after these. */
	advised_and_closed_by(close);
	advised_and_closed_by(by_dup2);
	advised_and_closed_by(by_dup3);
	fd = cold();
	CHECK(posix_fadvise(fd, 0, 0, POSIX_FADV_NORMAL) == 0);
	CHECK(close(fd) == 0);
	SAME(cold(), fd);
	c = under_way(fd, 101);
	CHECK(!reads_ahead(fd, 600));
	SAME(foreread_unregister_client(c), 0);
	CHECK(close(fd) == 0);
	advised_and_closed_by(close);
	advised_and_closed_in_a_child();

	fd = cold();
	c = under_way(fd, 101);
	CHECK(!reads_ahead(fd, 600));
	SAME(foreread_unregister_client(c), 0);
	CHECK(reads_ahead(fd, 900));
	CHECK(close(fd) == 0);

	fd = cold();
	c = under_way(fd, 1);
	CHECK(reads_ahead(fd, 600));
	SAME(foreread_unregister_client(c), 0);
	CHECK(close(fd) == 0);

	fd = cold();
	CHECK(posix_fadvise(fd, 0, 0, POSIX_FADV_NORMAL) == 0);
	c = under_way(fd, 101);
	CHECK(reads_ahead(fd, 600));
	SAME(foreread_unregister_client(c), 0);
	CHECK(close(fd) == 0);

	/* Advice that the kernel refuses does not count: the number is free, and becomes the file's. */
	fd = cold();
	CHECK(close(fd) == 0);
	SAME(posix_fadvise(fd, 0, 0, POSIX_FADV_NORMAL), EBADF);
	SAME(open(path, O_RDONLY), fd);
	c = under_way(fd, 101);
	CHECK(!reads_ahead(fd, 600));
	SAME(foreread_unregister_client(c), 0);
	CHECK(close(fd) == 0);

	/* Advice of the program while the list was read. */
	fd = cold();
	c = under_way(fd, 101);
	CHECK(posix_fadvise(fd, 0, 0, POSIX_FADV_RANDOM) == 0);
	SAME(foreread_unregister_client(c), 0);
	CHECK(!reads_ahead(fd, 900));
	CHECK(close(fd) == 0);

	/* A list that has run out has no next reads. */
	fd = cold();
	c = under_way(fd, 101);
	SAME(foreread_at(c, PAGES / 4 - 1), 0);
	for (i = 0; i < 16; i++)
		CHECK(pread(fd, page, PAGE, 600 * PAGE) == PAGE);
	CHECK(reads_ahead(fd, 900));
	SAME(foreread_unregister_client(c), 0);
	CHECK(close(fd) == 0);

	closed_by(close, 600);
	closed_by(by_dup2, 700);
	closed_by(by_dup3, 800);
	ended();
	return 0;
}
