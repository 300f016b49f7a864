// A constructor passes a descriptor to that of its base class, and one to another constructor of its
// class. A pointer that the base class's constructor keeps is to the object that is constructed.
//: STATUS File::get sliced
//: KEEPS prefetch_pread(
//: KEEPS Step steps[2] = {1, 2};
//: DATA data 200000
//: RUN
//: COUNTS
#include <cstdio>
#include <fcntl.h>
#include <unistd.h>

class File {
public:
	explicit File(int of) : fd(of) {}
	int get(long at)
	{
		unsigned char c = 0;
		pread(fd, &c, 1, at);
		return c;
	}

private:
	int fd;
};
class Rows : public File {
public:
	explicit Rows(int of) : File(of) {}
	explicit Rows(const char *path) : Rows(open(path, O_RDONLY)) {}
	int row(int i) { return get(i * 37 % 40 * 4096); }
};

class Place;
static Place *last;

class Place {
public:
	Place() { last = this; }
	virtual long at(int i) { return i; }
};
class Step : public Place {
public:
	Step(int) {}
	long at(int i) override { return i * 31 % 40 * 4096; }
};

int main()
{
	Step steps[2] = {1, 2};
	Rows rows("data");
	int sum = 0;
	for (int i = 0; i < 40; i++)
		sum += rows.row(i);
	for (int i = 0; i < 40; i++)
		sum += rows.get(last->at(i));
	std::printf("%d\n", sum);
	usleep(200000);
	return 0;
}
