// Elements named by constants are distinguished, and so are the halves that two loops run through:
// code for other elements is dropped. An unknown index may be of any element.
//: KEEPS files[0] = prefetch_open("data", O_RDONLY)
//: DROPS files[1]
//: DROPS limits[1]
//: KEEPS limits[0] = 50
//: KEEPS table[i] = i * 3
//: DROPS table[i + 32]
//: DROPS i * 5
//: KEEPS any[2] = 4
//: KEEPS any[3] = 5
//: DROPS rows[1]
//: KEEPS rows[0][i] = i
//: FILE data data
//: FILE other unused
//: DATA data 70000
//: DATA other 100
//: RUN
//: COUNTS
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static int limits[2];
static off_t table[64];
static int rows[2][16];

int main(int argc, char **argv)
{
	struct stat status;
	int files[2], any[4] = {1, 2};
	char c;
	unsigned sum = 0;
	files[0] = open("data", O_RDONLY);
	files[1] = open("other", O_RDONLY);
	limits[0] = 50;
	limits[1] = fstat(files[1], &status);
	any[2] = 4;
	any[3] = 5;
	for (int i = 0; i < 32; i++)
		table[i] = i * 3;
	for (int i = 0; i < 32; i++)
		table[i + 32] = i * 5;
	for (int i = 0; i < 16; i++) {
		rows[0][i] = i;
		rows[1][i] = sum++;
	}
	for (int i = 0; i < limits[0]; i++) {
		off_t place = i < 10 ? table[3] : any[i % 4];
		pread(files[0], &c, 1, place * 1000 + rows[0][i % 16]);
		sum = sum * 3 + c;
	}
	for (int i = 0; i < 64; i++)
		sum += table[i] + limits[i % 2] + rows[i & 1][i & 15];
	printf("%u\n", sum);
	usleep(200000);
	return 0;
}
