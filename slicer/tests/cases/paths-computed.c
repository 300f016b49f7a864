// At main's beginning a computed path is unknown, and so is the path of a file that the program creates.
//: PROGRAM { foreread_create_prefetch_thread(pf_main, argc, argv);
//: STATUS main sliced
//: DATA given.data 4096
//: RUN given
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	char path[100];
	unsigned char data = 0;
	if (argc < 2)
		return 2;
	snprintf(path, sizeof path, "%s.data", argv[1]);
	int fd = open(path, O_RDONLY);
	pread(fd, &data, 1, 7);
	printf("%d\n", data);
	return 0;
}
