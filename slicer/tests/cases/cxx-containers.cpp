// The referent of a reference into a container is part of the container: paths are completed in place.
//: STATUS main sliced
//: KEEPS for (std::basic_string<char> &name : names) { name += ".dat"; }
//: DATA a.dat 50000
//: DATA b.dat 50000
//: RUN
//: COUNTS
#include <cstdio>
#include <fcntl.h>
#include <string>
#include <unistd.h>
#include <vector>

int main()
{
	std::vector<std::string> names;
	names.push_back("a");
	names.push_back("b");
	for (auto &name : names)
		name += ".dat";
	unsigned sum = 0;
	for (size_t n = 0; n < names.size(); n++) {
		unsigned char c = 0;
		int fd = open(names[n].c_str(), O_RDONLY);
		for (long at = 40000; pread(fd, &c, 1, at) == 1 && at > 0; at -= 4000)
			sum = sum * 3 + c;
		close(fd);
	}
	printf("%u\n", sum);
	usleep(200000);
	return 0;
}
