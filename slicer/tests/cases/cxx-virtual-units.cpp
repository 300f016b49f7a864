// A function of another unit cannot be named where its class is not known.
//: UNCHANGED
//: STATUS main refused
//: WHY main it calls Order::next(), which is virtual, and may mean another unit's
//: UNIT order.h
struct Order {
	virtual ~Order() {}
	virtual long next() = 0;
};
Order *make();
//: UNIT backward.cpp
#include "order.h"

struct Backward : Order {
	long at = 5000;
	long next() override { return at -= 100; }
};

Order *make()
{
	return new Backward;
}
//: UNIT main.cpp
#include <fcntl.h>
#include <unistd.h>
#include "order.h"

int main()
{
	char c;
	int fd = open("data", O_RDONLY);
	Order *order = make();
	for (int i = 0; i < 50; i++)
		pread(fd, &c, 1, order->next());
	return 0;
}
