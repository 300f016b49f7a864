// A class that opens a file in its constructor and closes it in its destructor: both run unchanged,
// and the file is found by its descriptor.
//: STATUS File::File refused
//: WHY File::File constructor
//: STATUS File::~File refused
//: WHY File::~File destructor
//: STATUS File::get sliced
//: STATUS main sliced
//: KEEPS File file("data");
//: KEEPS pf_File_get(&file, 0, n * 100);
//: KEEPS pf_File_get(other.operator->(), 0, 40000 + n);
//: DATA data 70000
//: RUN
//: COUNTS
#include <cstdio>
#include <fcntl.h>
#include <memory>
#include <stdexcept>
#include <string>
#include <unistd.h>

class File {
public:
	explicit File(const std::string &path) : fd_(open(path.c_str(), O_RDONLY))
	{
		if (fd_ < 0)
			throw std::runtime_error(path);
	}
	~File() { close(fd_); }
	void get(unsigned char *to, long at) const { pread(fd_, to, 1, at); }

private:
	int fd_;
};

int main()
{
	unsigned sum = 0;
	for (int round = 0; round < 3; round++) {
		File file("data");
		for (int n = 0; n < 20; n++) {
			unsigned char c = 0;
			file.get(&c, n * 100);
			sum = sum * 3 + c;
		}
	}
	auto other = std::make_unique<File>("data");
	for (int n = 0; n < 10; n++) {
		unsigned char c = 0;
		other->get(&c, 40000 + n);
		sum += c;
	}
	printf("%u\n", sum);
	usleep(200000);
	return 0;
}
