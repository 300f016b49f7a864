// Names for the parts of an object: of a structure, of an array, and of values that functions of
// the C++ library and of the program return.
//: STATUS main sliced
//: KEEPS auto [from, step] = shape;
//: KEEPS for (const auto &[name, place] : index) {
//: KEEPS auto &[low, high] = ends;
//: KEEPS auto [file, start] = pf_opened();
//: WHY get counted: it gives a part of an object that is declared as auto [a, b]
//: KEEPS shift = 300;
//: KEEPS auto &[row, every] = rows;
//: KEEPS prefetch_pread(file, 1, start + n * 3000)
//: DATA data 200000
//: DATA other 100000
//: RUN
//: COUNTS
#include <cstdio>
#include <fcntl.h>
#include <map>
#include <string>
#include <unistd.h>
#include <utility>

struct Shape {
	long from, step;
};

struct Rows {
	int fd;
	long first, every;
};

static long shift;

namespace std {
template <> struct tuple_size<Rows> : integral_constant<size_t, 2> {};
template <size_t I> struct tuple_element<I, Rows> {
	using type = long;
};
}

template <std::size_t I> long get(const Rows &rows)
{
	unsigned char c = 0;
	pread(rows.fd, &c, 1, rows.first + shift);
	return I == 0 ? c * 100 : rows.every;
}

static Shape read_shape(int fd)
{
	unsigned char head[2] = {1, 1};
	pread(fd, head, 2, 100);
	return {head[0] * 100L, head[1] * 10L + 1};
}

static std::pair<int, long> opened()
{
	return {open("other", O_RDONLY), 700};
}

int main()
{
	int fd = open("data", O_RDONLY);
	unsigned sum = 0;
	Shape shape = read_shape(fd);
	auto [from, step] = shape;
	std::map<std::string, long> index{{"a", 5000}, {"b", 90000}, {"c", 40000}};
	for (int n = 0; n < 20; n++) {
		unsigned char c = 0;
		pread(fd, &c, 1, from + n * step);
		sum = sum * 3 + c;
	}
	for (const auto &[name, place] : index) {
		unsigned char c = 0;
		pread(fd, &c, 1, place);
		sum += c * name.size();
	}
	long ends[2] = {1000, 60000};
	auto &[low, high] = ends;
	low += 4096;
	for (long at = ends[0]; at < high; at += 8192) {
		unsigned char c = 0;
		pread(fd, &c, 1, at);
		sum = sum * 3 + c;
	}
	auto [file, start] = opened();
	for (int n = 0; n < 20; n++) {
		unsigned char c = 0;
		pread(file, &c, 1, start + n * 3000);
		sum = sum * 3 + c;
	}
	Rows rows{fd, 50, 6000};
	shift = 300;
	auto &[row, every] = rows;
	for (int n = 0; n < 10; n++) {
		unsigned char c = 0;
		pread(fd, &c, 1, row + n * every);
		sum = sum * 3 + c;
	}
	printf("%u\n", sum);
	usleep(200000);
	return 0;
}
