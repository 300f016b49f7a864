// Classes of the C++ library around the reads: those that decide where to read run unchanged, the others are gone.
//: STATUS main sliced
//: STATUS fetch sliced
//: KEEPS std::string path = "da"; path += "ta"; int fd = prefetch_open(path.c_str(), O_RDONLY);
//: KEEPS std::sort(order.begin(), order.end());
//: KEEPS for (long at : order)
//: DROPS cout
//: DROPS texts
//: DROPS catch
//: ASSUMED sort() may be run in the prefetch thread
//: DATA data 70000
//: RUN
//: COUNTS
#include <algorithm>
#include <fcntl.h>
#include <iostream>
#include <stdexcept>
#include <string>
#include <unistd.h>
#include <vector>

static unsigned char fetch(int fd, long at)
{
	unsigned char c;
	if (pread(fd, &c, 1, at) != 1)
		throw std::runtime_error("short read");
	return c;
}

int main()
{
	std::string path = "da";
	path += "ta";
	int fd = open(path.c_str(), O_RDONLY);
	std::vector<long> order;
	std::vector<std::string> texts;
	for (long i = 0; i < 60; i++)
		order.push_back(i * 7919 % 60000);
	std::sort(order.begin(), order.end());
	try {
		for (long at : order)
			texts.push_back(std::to_string(fetch(fd, at)));
		fetch(fd, 1000000);
	} catch (const std::exception &error) {
		std::cerr << error.what() << '\n';
	}
	for (const std::string &text : texts)
		std::cout << text << std::endl;
	usleep(200000);
	return 0;
}
