// A lambda expression that is passed on runs unchanged if it is needed and reads nothing.
//: KEEPS [&](int a, int b) -> bool
//: KEEPS return weight[a % 2] * a < weight[b % 2] * b;
//: STATUS main sliced
//: DATA data 70000
//: RUN
//: COUNTS
#include <algorithm>
#include <cstdio>
#include <fcntl.h>
#include <unistd.h>

int main()
{
	char c;
	unsigned sum = 0;
	int weight[] = {3, 1};
	int places[] = {700, 101, 300, 401};
	int fd = open("data", O_RDONLY);
	std::sort(places, places + 4, [&](int a, int b) { return weight[a % 2] * a < weight[b % 2] * b; });
	for (int i = 0; i < 40; i++) {
		pread(fd, &c, 1, places[i % 4] * (i + 1));
		sum = sum * 3 + c;
	}
	printf("%u\n", sum);
	usleep(200000);
	return 0;
}
