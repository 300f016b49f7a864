// Exceptions after which the program continues are thrown and caught in the prefetch thread, too: its own,
// those of constructors that run unchanged, and those of the library. Reads of handlers are announced.
//: STATUS get sliced
//: STATUS File::get sliced
//: STATUS main sliced
//: KEEPS throw Missing(path);
//: KEEPS catch (const Missing &missing) { continue; }
//: KEEPS catch (const std::exception &e) {
//: DROPS e.what()
//: DATA a 50000
//: DATA c 50000
//: DATA d 50000
//: RUN a b c d
//: COUNTS
#include <cstdio>
#include <fcntl.h>
#include <stdexcept>
#include <string>
#include <unistd.h>

class Missing : public std::runtime_error {
public:
	explicit Missing(const char *path) : std::runtime_error(path) {}
};

class File {
public:
	explicit File(const std::string &path) : fd(open(path.c_str(), O_RDONLY))
	{
		if (fd < 0)
			throw std::runtime_error("no " + path);
	}
	~File() { close(fd); }
	int get(long at) const
	{
		unsigned char c = 0;
		pread(fd, &c, 1, at);
		return c;
	}

private:
	int fd;
};

static unsigned get(const char *path)
{
	int fd = open(path, O_RDONLY);
	if (fd < 0)
		throw Missing(path);
	unsigned sum = 0;
	for (int n = 0; n < 10; n++) {
		unsigned char c = 0;
		pread(fd, &c, 1, 45000 - n * 4000);
		sum = sum * 3 + c;
	}
	close(fd);
	return sum;
}

int main(int argc, char **argv)
{
	unsigned sum = 0, failed = 0;
	for (int n = 1; n < argc; n++) {
		try {
			sum += get(argv[n]);
		} catch (const Missing &missing) {
			fprintf(stderr, "%s is not there\n", missing.what());
			failed++;
			continue;
		}
		try {
			File file(std::string(argv[n]) + (n == 3 ? "x" : ""));
			for (long at = 0; at < 50000; at += 5000)
				sum = sum * 5 + file.get(at);
		} catch (const std::exception &e) {
			int fd = open("d", O_RDONLY);
			unsigned char c = 0;
			pread(fd, &c, 1, 30000);
			sum += c;
			fprintf(stderr, "%s\n", e.what());
		}
	}
	printf("%u %u\n", sum, failed);
	usleep(200000);
	return 0;
}
