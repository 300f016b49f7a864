// A stream of the C++ library on a file, read by several operators in a row: it is read again, and
// its data decides where the program reads.
//: STATUS main sliced
//: KEEPS while (index >> name >> place)
//: TEXT index a 100\nb 70000\nc 40000\nd 160000\n
//: DATA data 200000
//: RUN
//: COUNTS
#include <cstdio>
#include <fcntl.h>
#include <fstream>
#include <string>
#include <unistd.h>

int main()
{
	int fd = open("data", O_RDONLY);
	std::ifstream index("index");
	std::string name;
	long place;
	unsigned sum = 0;
	while (index >> name >> place) {
		unsigned char c = 0;
		pread(fd, &c, 1, place);
		sum = sum * 3 + c;
	}
	printf("%u\n", sum);
	usleep(200000);
	return 0;
}
