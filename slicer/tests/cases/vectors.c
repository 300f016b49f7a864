// Elements of a vector: values assigned to the vector, and to each element.
//: KEEPS v = v + (four){
//: KEEPS v[2] = i * 8;
//: DROPS unrelated
//: DATA data 65536
//: RUN
//: COUNTS
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

typedef int four __attribute__((vector_size(16)));

int main(void)
{
	unsigned char c = 0;
	four v = { 1, 2, 3, 4 }, unrelated = { 0 };
	int fd = open("data", O_RDONLY);
	for (int i = 0; i < 40; i++) {
		v = v + (four){ 64, 0, 0, 100 };
		v[2] = i * 8;
		unrelated[1] += c;
		pread(fd, &c, 1, v[0] + v[2] * v[1]);
	}
	printf("%d %d\n", v[0], unrelated[1]);
	return 0;
}
