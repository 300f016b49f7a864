// A function of another unit cannot be named if its class is unknown here: that unit tests an object's class.
//: STATUS main sliced
//: STATUS Backward::next sliced
//: STATUS Twice::next sliced
//: KEEPS (Order *)pf_Backward_next_1_is((Order *)foreread_object) ? pf_Backward_next_1((Order *)pf_Backward_next_1_is((Order *)foreread_object), fd)
//: KEEPS return dynamic_cast<Backward *>((Order *)pointer);
//: DATA data 200000
//: RUN
//: COUNTS
//: UNIT order.h
struct Order {
	virtual ~Order() {}
	virtual long next(int fd) = 0;
};
struct Up : Order {
	long at = 0;
	long next(int fd) override;
};
Order *make(int kind);
//: UNIT backward.cpp
#include <unistd.h>
#include "order.h"

struct Named {
	virtual ~Named() {}
	long pad = 3;
};

struct Backward : Named, Order {
	long at = 90000;
	long next(int fd) override
	{
		unsigned char c = 0;
		pread(fd, &c, 1, at / 2);
		return at -= 900 + c;
	}
};

struct Twice : Up {
	long next(int fd) override { return Up::next(fd) * 2; }
};

Order *make(int kind)
{
	if (kind == 0)
		return new Backward;
	if (kind == 1)
		return new Twice;
	return new Up;
}
//: UNIT up.cpp
#include "order.h"

long Up::next(int fd)
{
	return at += 1500 + (fd < 0);
}
//: UNIT main.cpp
#include <cstdio>
#include <fcntl.h>
#include <unistd.h>
#include "order.h"

int main()
{
	unsigned char c;
	unsigned sum = 0;
	int fd = open("data", O_RDONLY);
	for (int kind = 0; kind < 3; kind++) {
		Order *order = make(kind);
		for (int i = 0; i < 30; i++) {
			c = 0;
			pread(fd, &c, 1, order->next(fd));
			sum = sum * 3 + c;
		}
	}
	printf("%u\n", sum);
	usleep(200000);
	return 0;
}
