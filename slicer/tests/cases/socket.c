// Data from a socket is sent, whichever call receives it.
//: PROGRAM foreread_send(1, &c
//: KEEPS foreread_receive(1, &c
//: DROPS recv(ends
//: DATA data 65536
//: RUN
//: COUNTS
#include <fcntl.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

int main(void)
{
	int ends[2], fd = open("data", O_RDONLY), sum = 0;
	unsigned char b;
	socketpair(AF_UNIX, SOCK_STREAM, 0, ends);
	write(ends[1], "places", 6);
	for (int i = 0; i < 6; i++) {
		unsigned char c = 0;
		recv(ends[0], &c, 1, 0);
		pread(fd, &b, 1, c * 100);
		sum += b;
	}
	printf("%d\n", sum);
	usleep(200000);
	return 0;
}
