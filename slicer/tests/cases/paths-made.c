// A file that the program creates does not exist yet when main begins.
//: PROGRAM { foreread_create_prefetch_thread(pf_main,
//: STATUS main sliced
//: RUN
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

int main(void)
{
	unsigned char data = 0;
	int out = open("made", O_WRONLY | O_CREAT, 0666);
	write(out, "made", 4);
	close(out);
	int fd = open("made", O_RDONLY);
	pread(fd, &data, 1, 2);
	printf("%d\n", data);
	return 0;
}
