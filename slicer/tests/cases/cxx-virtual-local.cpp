// A class local to a function has no name elsewhere.
//: UNCHANGED
//: STATUS main refused
//: WHY main it calls Order::next(), which is virtual, and may mean that of a class without a name
#include <fcntl.h>
#include <unistd.h>

struct Order {
	virtual ~Order() {}
	virtual long next() = 0;
};

int main()
{
	struct Backward : Order {
		long at = 5000;
		long next() override { return at -= 100; }
	};
	char c;
	int fd = open("data", O_RDONLY);
	Backward backward;
	Order *order = &backward;
	for (int i = 0; i < 50; i++)
		pread(fd, &c, 1, order->next());
	return 0;
}
