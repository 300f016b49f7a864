// A virtual call: the object decides in both threads which function is called. The program's
// arguments are counted although they have no name.
//: PROGRAM foreread_create_prefetch_thread(pf_main, argc, 0);
//: STATUS main sliced
//: STATUS Backward::next pure
//: STATUS Twice::next sliced
//: KEEPS dynamic_cast<Twice *>(foreread_object) ? pf_Twice_next(dynamic_cast<Twice *>(foreread_object))
//: DATA data 20000
//: RUN
//: RUN more
//: COUNTS
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

static int fd;

struct Order {
	virtual ~Order() {}
	virtual long next() = 0;
	virtual void skip(long bytes) { lost += bytes; }
	long lost = 0;
};
struct Backward : Order {
	long at = 5000;
	long next() override { return at -= 100; }
	void skip(long bytes) override { at -= bytes; }
};
struct Twice : Backward {
	unsigned char seen = 0;
	long next() override
	{
		pread(fd, &seen, 1, at);
		return (at -= 50) + seen;
	}
};
struct Fixed : Order {
	long next() override { return 17; }
};
struct Source {
	Order &order;
	explicit Source(Order &of) : order(of) {}
	int get()
	{
		unsigned char c = 0;
		order.skip(3);
		pread(fd, &c, 1, order.next());
		return c;
	}
};

int main(int argc, char **)
{
	fd = open("data", O_RDONLY);
	Backward backward;
	Fixed fixed;
	Order *twice = new Twice, *all[] = {&backward, twice, &fixed, twice};
	int sum = 0;
	for (int i = 0; i < 40; i++) {
		Source source(*all[argc > 1 ? i % 4 : 0]);
		sum += source.get();
	}
	printf("%d\n", sum);
	usleep(200000);
	delete twice;
	return 0;
}
