// A template's text is counted in all instantiations or in none: if it differs between them, or the
// program would have to send, both threads run all of them unchanged, or they are not announced.
//: STATUS some whole
//: WHY some counted: it is one of several that are made from a template
//: STATUS asks refused
//: WHY asks it is one of several that are made from a template
//: STATUS none whole
//: WHY none counted: it is one of several that are made from a template
//: STATUS names refused
//: WHY names type that is known in one function only
//: STATUS peek sliced
//: STATUS main sliced
//: DATA data 200000
//: INPUT 5 6\n
//: DIFFERS standard input of what is left whole
//: RUN
//: COUNTS
#include <cstdio>
#include <fcntl.h>
#include <unistd.h>

static int peek(int fd, long at)
{
	unsigned char c = 0;
	pread(fd, &c, 1, at);
	return c;
}

template <typename T> static int some(int fd, long at)
{
	T value = 0;
	if constexpr (sizeof(T) > 1)
		pread(fd, &value, sizeof value, at);
	return value + peek(fd, at + 9000);
}

template <typename T> static T asks(int fd)
{
	T number = 0;
	char digit[2] = {0};
	if (fread(digit, 1, 2, stdin) == 2)
		number = digit[0] - '0';
	return number + peek(fd, number * 1000);
}

template <typename... T> static int none(int fd, T... at)
{
	unsigned char c = 0;
	long all[] = {0, pread(fd, &c, 1, at)...};
	return c + int(sizeof all / sizeof *all);
}

template <typename... T> static int names(int fd, T... of)
{
	unsigned char c = 0;
	pread(fd, &c, 1, (0 + ... + of.at) + (getchar() == 'x'));
	return c;
}

int main()
{
	int fd = open("data", O_RDONLY);
	unsigned sum = 0;
	for (int n = 0; n < 20; n++)
		sum = sum * 3 + some<char>(fd, n * 700) + some<short>(fd, n * 1700);
	struct Own {
		int at;
	};
	sum = sum * 3 + none(fd) + none(fd, 20000, 30000L) + names(fd, Own{3000}, Own{50000});
	sum = sum * 3 + asks<int>(fd) + asks<long>(fd);
	for (int n = 0; n < 20; n++)
		sum = sum * 3 + peek(fd, sum % 1000 + n * 4000);
	printf("%u\n", sum);
	usleep(200000);
	return 0;
}
