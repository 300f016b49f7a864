// Both threads run a constructor that reads unchanged, and its text counts its reads in both; also
// the constructors that the compiler adds.
//: STATUS Index::Index whole
//: WHY Index::Index counted: it is a constructor
//: STATUS File::at sliced
//: STATUS Pair::sum sliced
//: STATUS main sliced
//: KEEPS Index index(file);
//: KEEPS return (to ? fetch_pread((self->*foreread_private(foreread_File_fd_())), to, n, off) : prefetch_pread((self->*foreread_private(foreread_File_fd_())), n, off))
//: KEEPS pf_File_at(&file, place, 0, 1);
//: PROGRAM unsigned got = pread(fd_, &first, sizeof first, 0); foreread_call();
//: DATA data 70000
//: RUN
//: COUNTS
#include <cstdio>
#include <fcntl.h>
#include <unistd.h>
#include <vector>

class File {
public:
	explicit File(const char *path) : fd_(open(path, O_RDONLY))
	{
		unsigned char first;
		unsigned got = pread(fd_, &first, sizeof first, 0);
		kind = got ? first : 0;
	}
	~File() { close(fd_); }
	long at(long off, void *to, long n) const { return pread(fd_, to, n, off); }
	int kind;

private:
	int fd_;
};

struct Index {
	std::vector<long> places;
	explicit Index(const File &file)
	{
		for (int n = 0; n < 20; n++) {
			unsigned char c = 0;
			file.at(n * 3000, &c, 1);
			places.push_back(c * 200L);
		}
	}
};

struct Pair {
	File one{"data"}, other{"data"};
	int sum(long at) const
	{
		unsigned char a = 0, b = 0;
		one.at(at, &a, 1);
		other.at(69999 - at, &b, 1);
		return a + b * 2;
	}
};

int main()
{
	unsigned sum = 0;
	for (int round = 0; round < 3; round++) {
		File file("data");
		Index index(file);
		for (long place : index.places) {
			unsigned char c = 0;
			file.at(place, &c, 1);
			sum = sum * 3 + c;
		}
	}
	Pair pair;
	for (int n = 0; n < 30; n++)
		sum += pair.sum(n * 2000);
	printf("%u %d\n", sum, pair.one.kind);
	usleep(200000);
	return 0;
}
