// An array that two units share: accesses of either unit to different elements are distinguished.
//: KEEPS shared[0] = 300
//: DROPS shared[1]
//: DATA data 70000
//: RUN
//: COUNTS
//: UNIT main.c
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

extern int shared[];
void prepare(void);

int main(void)
{
	char c;
	unsigned sum = 0;
	int fd = open("data", O_RDONLY);
	prepare();
	for (int i = 0; i < 40; i++) {
		pread(fd, &c, 1, shared[0] * i);
		sum = sum * 3 + c;
	}
	printf("%d %u\n", shared[1], sum);
	usleep(200000);
	return 0;
}
//: UNIT prepare.c
int shared[2];

void prepare(void)
{
	shared[0] = 300;
	shared[1] = 400;
}
