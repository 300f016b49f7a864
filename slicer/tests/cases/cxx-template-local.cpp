// A template instantiated with a type without a name elsewhere, such as a lambda expression's, runs
// unchanged: its reads are not announced.
//: STATUS each refused
//: WHY each known in one function only
//: STATUS main sliced
//: KEEPS prefetch_pread(fd, 1, i * 1000)
//: DATA data 70000
//: RUN
//: COUNTS
#include <cstdio>
#include <fcntl.h>
#include <unistd.h>

template <class F> int each(int n, F f)
{
	int sum = 0;
	for (int i = 0; i < n; i++)
		sum += f(i);
	return sum;
}

int main()
{
	unsigned char c = 0;
	unsigned sum = 0;
	int fd = open("data", O_RDONLY);
	int last = each(50, [](int i) { return i % 2; });
	for (int i = 0; i < last; i++) {
		pread(fd, &c, 1, i * 1000);
		sum = sum * 3 + c;
	}
	printf("%u\n", sum);
	usleep(200000);
	return 0;
}
