/* Reads pages of a file twice, and prints for each read whether the thread was switched out during it: v if it waited, i if it was
 * interrupted, and - if neither. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	static char page[4096];
	int fd = open(argv[1], O_RDONLY);
	long pages = atol(argv[2]);

	for (long n = 0; n < 2 * pages; n++) {
		struct rusage before, after;

		getrusage(RUSAGE_THREAD, &before);
		pread(fd, page, sizeof page, n * 389 % pages * 4096);
		getrusage(RUSAGE_THREAD, &after);
		putchar(after.ru_nivcsw != before.ru_nivcsw ? 'i' : after.ru_nvcsw != before.ru_nvcsw ? 'v' : '-');
	}
	return 0;
}
