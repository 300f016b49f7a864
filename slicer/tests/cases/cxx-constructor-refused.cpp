// A constructor that reads standard input would find nothing there in the prefetch thread: its reads
// and those of its callees are not announced. It is unknown when a destructor that reads is run.
//: STATUS Choice::Choice refused
//: WHY Choice::Choice it is a constructor
//: STATUS peek sliced
//: STATUS Last::~Last refused
//: WHY Last::~Last it is a destructor
//: STATUS main sliced
//: DATA data 70000
//: INPUT 7\n
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

struct Choice {
	int number;
	explicit Choice(int fd)
	{
		if (scanf("%d", &number) == 1)
			number += peek(fd, number * 1000L);
	}
};

struct Last {
	int fd, &into;
	~Last()
	{
		unsigned char c = 0;
		pread(fd, &c, 1, 60000);
		into += c;
	}
};

int main()
{
	int fd = open("data", O_RDONLY), sum = 0;
	{
		Last last{fd, sum};
		for (int n = 0; n < 20; n++) {
			unsigned char c = 0;
			pread(fd, &c, 1, n * 3000L);
			sum += c + peek(fd, n * 2000L);
		}
	}
	Choice choice(fd);
	printf("%d %d\n", sum, choice.number);
	usleep(200000);
	return 0;
}
