/* POSIX locks end when any descriptor of the file is closed in the process: the library closes
 * none. */
#include "check.h"
#include "foreread.h"

static int locked_by_parent(const char *path)
{
	struct flock lock;
	int status = -1;
	pid_t pid = fork();

	CHECK(pid >= 0);
	if (pid == 0) {
		int fd = open(path, O_RDWR);

		memset(&lock, 0, sizeof(lock));
		lock.l_type = F_WRLCK;
		lock.l_whence = SEEK_SET;
		_exit(fd < 0 || fcntl(fd, F_GETLK, &lock) != 0 ? 2 : lock.l_type != F_UNLCK);
	}
	CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status));
	CHECK(WEXITSTATUS(status) != 2);
	return WEXITSTATUS(status);
}

int main(int argc, char **argv)
{
	foreread_client *c = NULL;
	foreread_entry entries[64];
	char path[PATH_MAX];
	struct flock lock;
	int fd, i, region, file;

	CHECK(argc > 1);
	make_path(path, argv[1], "file", 1 << 20);
	fd = open(path, O_RDWR);
	CHECK(fd >= 0);
	CHECK(fsync(fd) == 0);
	CHECK(posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED) == 0);
	memset(&lock, 0, sizeof(lock));
	lock.l_type = F_WRLCK;
	lock.l_whence = SEEK_SET;
	CHECK(fcntl(fd, F_SETLK, &lock) == 0);
	SAME(locked_by_parent(path), 1);

	SAME(foreread_register_client(&c, NULL, NULL, NULL), 0);
	region = foreread_register_region(c, fd, 0, UINT64_MAX);
	CHECK(region >= 0);
	file = foreread_register_file(c, path);
	CHECK(file >= FOREREAD_FIRST_FILE);
	SAME(foreread_register_file(c, path), file);
	SAME(locked_by_parent(path), 1);
	memset(entries, 0, sizeof(entries));
	for (i = 0; i < 64; i++) {
		entries[i].fd = i % 2 ? fd : file;
		entries[i].offset = (uint64_t)(i * 37 % 64) * 16384;
		entries[i].length = 4096;
	}
	SAME(foreread_request_prefetching(c, entries, 64, FOREREAD_SET), 64);
	for (i = 0; i < 64; i++)
		read_byte(fd, (off_t)entries[i].offset);
	usleep(50000);
	SAME(locked_by_parent(path), 1);
	SAME(foreread_unregister_region(c, region), 0);
	SAME(locked_by_parent(path), 1);
	SAME(foreread_unregister_client(c), 0);
	usleep(50000);
	SAME(locked_by_parent(path), 1);
	return 0;
}
