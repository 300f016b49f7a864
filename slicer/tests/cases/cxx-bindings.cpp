// Names for the parts of an object: of a structure, of an array, and of what the C++ library gives for them.
//: STATUS main sliced
//: KEEPS auto [from, step] = shape;
//: KEEPS for (const auto &[name, place] : index) {
//: KEEPS auto &[low, high] = ends;
//: DATA data 200000
//: RUN
//: COUNTS
#include <cstdio>
#include <fcntl.h>
#include <map>
#include <string>
#include <unistd.h>

struct Shape {
	long from, step;
};

static Shape read_shape(int fd)
{
	unsigned char head[2] = {1, 1};
	pread(fd, head, 2, 100);
	return {head[0] * 100L, head[1] * 10L + 1};
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
	printf("%u\n", sum);
	usleep(200000);
	return 0;
}
