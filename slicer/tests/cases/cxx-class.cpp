// A class with private members: the object is a parameter, and its members are reached by pointers to them.
//: STATUS Reader::block sliced
//: STATUS Reader::next sliced
//: STATUS Reader::reads whole
//: KEEPS extern "C" void pf_Reader_block(Reader *self, long at);
//: KEEPS template struct foreread_grant<foreread_Reader_fd_, &Reader::fd_>;
//: KEEPS (self->*foreread_private(foreread_Reader_at_())) += 100;
//: KEEPS pf_Reader_next(&reader)
//: KEEPS prefetch_pread((self->*foreread_private(foreread_Reader_fd_())), 32, at)
//: PROGRAM pread(fd_, bytes_, size_, at); foreread_call();
//: DROPS reads_
//: DROPS sum_
//: DATA data 70000
//: RUN
//: COUNTS
#include <cstdio>
#include <fcntl.h>
#include <unistd.h>

class Reader {
public:
	void attach(int fd) { fd_ = fd; }
	void next()
	{
		block(at_);
		at_ += 100;
	}
	long reads() const { return reads_; }
	unsigned sum() const { return sum_; }

private:
	void block(long at);

	static constexpr int size_ = 32;
	int fd_ = -1;
	long at_ = 0, reads_ = 0;
	unsigned char bytes_[size_];
	unsigned sum_ = 0;
};

void Reader::block(long at)
{
	pread(fd_, bytes_, size_, at);
	reads_++;
	for (unsigned char byte : bytes_)
		sum_ = sum_ * 3 + byte;
}

int main()
{
	Reader reader;
	reader.attach(open("data", O_RDONLY));
	for (int i = 0; i < 100; i++)
		reader.next();
	printf("%u %ld\n", reader.sum(), reader.reads());
	usleep(200000);
	return 0;
}
