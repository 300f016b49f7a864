// Exceptions composed by member functions of their class, other temporary objects, and templates
// with constants of a namespace as arguments.
//: STATUS get sliced
//: STATUS main sliced
//: KEEPS catch (const trouble::Error &error)
//: DATA a 50000
//: DATA c 50000
//: DIFFERS operands of overloaded operators
//: RUN a b c
//: COUNTS
#include <cstdio>
#include <fcntl.h>
#include <string>
#include <unistd.h>

namespace trouble {
class Error {
public:
	Error &operator<<(const char *part)
	{
		text += part;
		return *this;
	}
	Error &operator<<(int part)
	{
		unsigned char c = 0;
		int fd = open("c", O_RDONLY);
		pread(fd, &c, 1, part * 9L);
		text += std::to_string(part) + std::to_string(c);
		return *this;
	}
	long places(int n) const
	{
		return 100L * n + text.size();
	}
	std::string text;
};

struct Worse : Error {};

const int Wide = 4;
template <int Bits> struct Field {
	int shift() const { return Bits * 100; }
};

static int shifted(const Field<Wide> &field, int n)
{
	Field<Wide * 2> other;
	return field.shift() + other.shift() * n;
}
} // namespace trouble

#define Worse() Worse() << __LINE__

static int get(const char *path, int number)
{
	int fd = open("a", O_RDONLY);
	unsigned char c = 0;
	pread(fd, &c, 1, number + (path[0] & 15) * 1000L);
	return c;
}

static unsigned get(const char *path)
{
	trouble::Field<trouble::Wide> field;
	int fd = open(path, O_RDONLY);
	if (fd < 0)
		throw trouble::Worse() << get(path, 7) << "no " << path << 5;
	unsigned sum = 0;
	for (int n = 0; n < 10; n++) {
		unsigned char c = 0;
		long more = trouble::Error().places(n);
		pread(fd, &c, 1, 40000 - shifted(field, n) + more);
		sum = sum * 3 + c;
	}
	close(fd);
	return sum;
}

int main(int argc, char **argv)
{
	unsigned sum = 0;
	for (int n = 1; n < argc; n++) {
		try {
			sum += get(argv[n]);
		} catch (const trouble::Error &error) {
			fprintf(stderr, "%s\n", error.text.c_str());
		}
	}
	printf("%u\n", sum);
	usleep(200000);
	return 0;
}
