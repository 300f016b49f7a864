// scanf and read from standard input: numbers and bytes are sent, with the results that the loop tests.
//: PROGRAM foreread_send(1, &n, sizeof(n));
//: KEEPS foreread_receive(1, &n, sizeof(n));
//: DATA data 4096
//: INPUT 100 20 4000 3 x
//: RUN
//: COUNTS
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

int main(void)
{
	int n;
	unsigned char c = 0, key[2] = { 0, 0 };
	int fd = open("data", O_RDONLY);
	while (scanf("%d", &n) == 1) {
		pread(fd, &c, 1, n);
		printf("%d\n", c);
	}
	if (read(0, key, 2) >= 0)
		pread(fd, &c, 1, key[0]);
	printf("%d\n", c);
	usleep(200000);
	return 0;
}
