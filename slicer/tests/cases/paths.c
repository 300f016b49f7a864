// If the paths of all files that are read are known at main's beginning, as arguments and
// constants, the program first asks whether all of them are in memory.
//: PROGRAM { if (foreread_may_wait(argc, argv, "fixed\0" "strange \134\045\0" "")) foreread_create_prefetch_thread(
//: STATUS main sliced
//: DATA given 4096
//: DATA fixed 4096
//: RUN given
//: RUN -f given
//: COUNTS
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

static int byte(const char *path, int at)
{
	unsigned char data = 0;
	int fd = open(path, O_RDONLY);
	pread(fd, &data, 1, at);
	close(fd);
	return data;
}

int main(int argc, char **argv)
{
	const char *path = argv[1];
	if (getopt(argc, argv, "f:") == 'f')
		path = optarg;
	int fixed = open("fixed", O_RDONLY), strange = open("strange \\%", O_RDONLY);
	unsigned char data[2] = {0};
	pread(fixed, data, 1, 7);
	pread(strange, data + 1, 1, 7);
	printf("%d %d %d\n", byte(path, 5), data[0], data[1]);
	usleep(100000);
	return 0;
}
