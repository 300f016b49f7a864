// Instantiations of one template share parts of their trees: this, jumps, and other parts that do
// not depend on the arguments.
//: STATUS Reader::find sliced
//: STATUS skip sliced
//: STATUS until sliced
//: KEEPS fetch_pread(fd, self, sizeof *self, 400 + self->next * 700L);
//: STATUS each sliced
//: STATUS main sliced
//: KEEPS auto at = [fd](long place) -> int
//: KEEPS break;
//: DATA data 200000
//: RUN
//: COUNTS
#include <cstdio>
#include <fcntl.h>
#include <unistd.h>

static int global = -1;
static unsigned char header[8];

class Reader {
public:
	explicit Reader(int fd) : fd(fd) {}
	// The expression for the object is shared by all instantiations.
	template <typename T> T take()
	{
		T value = 0;
		place += 3000;
		pread(fd, &value, sizeof value, place);
		moves++;
		return value;
	}
	template <typename T> int find(T wanted)
	{
		int n = 0;
		for (;;) {
			T here = take<T>();
			if (here == wanted)
				break;
			if (n > 20)
				break;
			n++;
		}
		return n + moves;
	}

private:
	int fd, moves = 0;
	long place = 0;
};

// Jumps that need each other.
template <typename T> static int until(int fd, T limit)
{
	int n = 0;
	for (;;) {
		T here = 0;
		pread(fd, &here, sizeof here, n * 11000L);
		if (++n < limit)
			continue;
		break;
	}
	return n;
}

// A read into the object itself; one instantiation is never called.
struct Link {
	unsigned char next;
	template <int Base> void follow(int fd)
	{
		pread(fd, this, sizeof *this, Base + next * 700L);
	}
};
template void Link::follow<900>(int fd);

// A read that is the same in both.
template <int Times> static int skip()
{
	int sum = 0;
	for (int n = 0; n < Times; n++) {
		if (read(global, header, sizeof header) < 8)
			break;
		sum += header[3];
	}
	return sum;
}

template <typename T> static int each(int fd, T first, T last)
{
	auto at = [fd](long place) {
		unsigned char c = 0;
		pread(fd, &c, 1, place);
		return int(c);
	};
	int sum = 0;
	for (T n = first; n < last; n++)
		sum += at(n * 5000);
	return sum;
}

int main()
{
	int fd = global = open("data", O_RDONLY);
	Reader one(fd), other(fd);
	unsigned sum = one.find<unsigned char>(77) + other.find<unsigned short>(7777);
	lseek(global, sum * 40, SEEK_SET);
	sum = sum * 3 + skip<4>() + skip<9>();
	sum = sum * 3 + each<int>(fd, 2, 9) + each<long>(fd, 11, 15);
	Link link{3};
	for (int n = 0; n < 9; n++)
		link.follow<400>(fd);
	sum = sum * 3 + link.next + until<short>(fd, 7) + until<unsigned char>(fd, 5);
	printf("%u\n", sum);
	usleep(200000);
	return 0;
}
