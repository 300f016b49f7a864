// If main has no name for the number of its arguments, it cannot check the files of its arguments first.
//: STATUS main sliced
//: PROGRAM { foreread_create_prefetch_thread(pf_main, 0, argv);
//: DATA data 70000
//: RUN data
//: COUNTS
#include <cstdio>
#include <fcntl.h>
#include <unistd.h>

int main(int, char **argv)
{
	int fd = open(argv[1], O_RDONLY), sum = 0;
	for (int n = 0; n < 20; n++) {
		unsigned char c = 0;
		pread(fd, &c, 1, n * 3000L);
		sum += c;
	}
	printf("%d\n", sum);
	usleep(200000);
	return 0;
}
