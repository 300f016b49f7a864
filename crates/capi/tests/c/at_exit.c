/* A client that the program does not end writes its report at the end of the process, which does not hang. */
#include "check.h"
#include "foreread.h"

#ifdef __SANITIZE_ADDRESS__
/* A thread of the library may just be starting at the exit. Its argument counts as a leak. */
const char *__asan_default_options(void);

const char *__asan_default_options(void)
{
	return "detect_leaks=0";
}
#endif

int main(int argc, char **argv)
{
	char report[PATH_MAX], text[8192] = "";
	int fd, status = -1;
	FILE *stream;
	pid_t pid;

	CHECK(argc > 1);
	fd = make_file(argv[1], "file", 65536);
	snprintf(report, sizeof(report), "%s/report", argv[1]);
	pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		foreread_client *c = NULL;
		foreread_entry entry = {0, 0, 4096, 100};

		CHECK(setenv("FOREREAD_CHECK", report, 1) == 0);
		entry.fd = fd;
		SAME(foreread_register_client(&c, NULL, NULL, NULL), 0);
		CHECK(foreread_register_region(c, fd, 0, UINT64_MAX) >= 0);
		SAME(foreread_request_prefetching(c, &entry, 1, FOREREAD_SET), 1);
		read_byte(fd, 4100);
		read_byte(fd, 12345);
		exit(0);
	}
	CHECK(waitpid(pid, &status, 0) == pid);
	CHECK(WIFEXITED(status));
	SAME(WEXITSTATUS(status), 0);
	stream = fopen(report, "r");
	CHECK(stream != NULL);
	CHECK(fread(text, 1, sizeof(text) - 1, stream) > 0);
	/* The read that was not on the list is among the differences. */
	CHECK(strstr(text, "12345") != NULL);
	CHECK(fclose(stream) == 0);
	return 0;
}
