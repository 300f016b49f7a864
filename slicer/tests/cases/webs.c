// One variable for two purposes: the loop that only computes is dropped, the other is kept.
//: DROPS sum
//: DROPS table[
//: KEEPS for (i = 10; i > 0; i--)
//: DROPS for (i = 0
//: DATA data 4096
//: RUN
//: COUNTS
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

int main(void)
{
	unsigned char table[100];
	unsigned sum = 0;
	int i, n;
	int fd = open("data", O_RDONLY);
	for (i = 10; i > 0; i--)
		pread(fd, table + i * 10 - 10, 10, i * 37);
	for (i = 0; i < 100 && table[i] != 255; i++)
		sum = sum * 7 + table[i];
	printf("%u\n", sum);
	n = sum % 100;
	printf("%d\n", n);
	n = read(fd, table, 5);
	while (n-- > 0)
		lseek(fd, 9, SEEK_CUR), read(fd, table, 1);
	usleep(200000);
	return 0;
}
