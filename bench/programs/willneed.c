/* Calls posix_fadvise(POSIX_FADV_WILLNEED) once on each whole file, as an application would, then runs the command in
 * place of this program.
 *
 *   willneed FILE... -- COMMAND ARGS... */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	int at = 1;
	for (; at < argc && strcmp(argv[at], "--") != 0; at++) {
		int fd = open(argv[at], O_RDONLY);
		if (fd < 0) { perror(argv[at]); return 1; }
		int error = posix_fadvise(fd, 0, 0, POSIX_FADV_WILLNEED);
		if (error) { fprintf(stderr, "%s: %s\n", argv[at], strerror(error)); return 1; }
		close(fd);
	}
	if (at + 1 >= argc) { fprintf(stderr, "usage: willneed FILE... -- COMMAND ARGS...\n"); return 2; }
	execvp(argv[at + 1], argv + at + 1);
	perror(argv[at + 1]);
	return 127;
}
