// Functions in namespaces, overloaded, with references and default arguments; the printed text is
// outside of all namespaces and qualifies their names.
//: STATUS main sliced
//: STATUS store::block sliced
//: STATUS store::place pure
//: KEEPS static void pf_store_block(int fd, const store::Range &range)
//: KEEPS pf_store_block_2(fd, 0, list[i])
//: KEEPS fetch_pread(fd, &header, sizeof header, 0)
//: KEEPS store::place(header % 7, store::Step::Long)
//: KEEPS static_cast<long>(i) * store::kBlock
//: PROGRAM extern "C" void foreread_create_prefetch_thread(void (*)(int, char **), int, char **);
//: DROPS sum
//: DATA data 70000
//: RUN
//: COUNTS
#include <cstdio>
#include <cstdint>
#include <fcntl.h>
#include <unistd.h>

namespace store {

constexpr long kBlock = 64;
enum class Step : int { Short = 1, Long = 10 };
struct Range { long offset = 0; long length = 16; };

namespace {
unsigned char buffer[4096];
unsigned long sum;
}

static long place(long n, Step step = Step::Short)
{
	return n * static_cast<int>(step) * kBlock;
}

static void block(int fd, const Range &range)
{
	pread(fd, buffer, range.length, range.offset);
	for (long i = 0; i < range.length; i++)
		sum += buffer[i];
}

static void block(int fd, unsigned long *total, long at)
{
	pread(fd, buffer, 8, at);
	*total += buffer[0];
}

static void widen(Range &range, long by = 2)
{
	range.length += by;
}

}

using namespace store;

int main()
{
	const int fd = open("data", O_RDONLY);
	uint32_t header = 0;
	if (fd < 0)
		return 1;
	pread(fd, &header, sizeof header, 0);
	Range range{place(header % 7, Step::Long)};
	for (int i = 0; i < 20; i++) {
		block(fd, range);
		widen(range);
		range.offset += static_cast<long>(i) * kBlock;
	}
	long *list = new long[10];
	for (int i = 0; i < 10; i++)
		list[i] = place(10 - i);
	bool done = false;
	for (int i = 0; !done; i++) {
		block(fd, &sum, list[i]);
		done = i == 9;
	}
	delete[] list;
	printf("%lu\n", sum);
	usleep(200000);
	return 0;
}
