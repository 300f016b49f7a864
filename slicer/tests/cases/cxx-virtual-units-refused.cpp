// A class without a name in another unit cannot be tested for from this unit.
//: UNCHANGED
//: STATUS main refused
//: WHY main it calls Order::next(), which is virtual, and may mean that of a class without a name
//: UNIT order.h
struct Order {
	virtual ~Order() {}
	virtual long next() = 0;
};
Order *make();
//: UNIT backward.cpp
#include "order.h"

Order *make()
{
	struct Backward : Order {
		long at = 5000;
		long next() override { return at -= 100; }
	};
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
