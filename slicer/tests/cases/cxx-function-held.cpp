// Functions held by a std::function: a name is replaced by the prefetch version's, a pointer is compared with each function.
// Functions passed before main are run by both threads unchanged, as are those that the library calls in other ways.
//: STATUS main sliced
//: KEEPS std::function<void (long)> kept = pf_look;
//: KEEPS text = static_cast<void (*)(const char *)>(&pf_see_2);
//: KEEPS all.push_back(pf_look);
//: KEEPS all.emplace_back(pf_next);
//: KEEPS {{"look", pf_look}, {"next", pf_next}};
//: KEEPS int place = times(7, &pf_ask);
//: KEEPS pf_fill(all);
//: KEEPS all.emplace_back(pf_next);
//: KEEPS sum += defaults.with(20);
//: KEEPS sum += table.at("early")(100);
//: KEEPS std::for_each(places.begin(), places.end(), each);
//: KEEPS bound(2);
//: KEEPS char (*either)(char) = sum > 5 ? narrow : wide;
//: KEEPS std::function<char (char)> by_pointer = __extension__({ auto foreread_target = either; foreread_target ==
//: KEEPS ? (decltype(foreread_target))pf_wide :
//: KEEPS prefetch_pread(other, 1, at * 1000);
//: DATA data 200000
//: RUN
//: COUNTS
#include <algorithm>
#include <cstdio>
#include <fcntl.h>
#include <functional>
#include <map>
#include <string>
#include <unistd.h>
#include <vector>

static int fd;
static unsigned sum;

static unsigned get(long at)
{
	unsigned char c = 0;
	pread(fd, &c, 1, at);
	return c;
}

static void look(long at) { sum = sum * 3 + get(at * 500); }
static void see(int at) { sum += at; }
static void see(const char *at) { sum = sum * 3 + get(at[0] * 400); }
void next(long at);

static int ask(int n)
{
	unsigned char c = 0;
	pread(fd, &c, 1, n * 9000);
	return c + n;
}

static int times(int n, const std::function<int(int)> &body)
{
	int sum = 0;
	for (int i = 0; i < n; i++)
		sum += body(i);
	return sum;
}

static short early(short at) { return get(at * 30) & 15; }
static const std::map<std::string, std::function<short(short)>> table{{"early", early}};

static void each(unsigned &at) { sum += get(at); }
static char narrow(char at) { return get(at * 1300); }
static char wide(char at) { return get(at * 1500); }

static int narrow_by(int at, char by) { return get(at * 2300 + by); }

struct Row {
	long base;
	unsigned member(int at) const { return get(base + at); }
};

static void fill(std::vector<std::function<void(long)>> &all) { all.emplace_back(next); }

static long other(long at) { return get(at * 1100); }
struct Defaults {
	std::function<long(long)> with = other;
};

int main()
{
	Defaults defaults{};
	fd = open("data", O_RDONLY);
	std::function<void(long)> kept = look;
	for (int n = 0; n < 10; n++)
		kept(n);
	std::function<void(const char *)> text;
	text = static_cast<void (*)(const char *)>(&see);
	text("x");
	see(3);
	std::vector<std::function<void(long)>> all;
	all.push_back(look);
	fill(all);
	for (auto &one : all)
		one(90);
	std::map<std::string, std::function<void(long)>> named{{"look", look}, {"next", next}};
	for (auto &[name, one] : named)
		one(name[0]);
	int place = times(7, &ask);
	sum += get(place);
	sum += defaults.with(20);
	look(place);
	sum += table.at("early")(100);
	std::vector<unsigned> places{5, 60000, 40000};
	std::for_each(places.begin(), places.end(), each);
	auto bound = std::bind(narrow_by, std::placeholders::_1, 4);
	sum += bound(2);
	char (*either)(char) = sum > 5 ? narrow : wide;
	std::function<char(char)> by_pointer = either;
	sum += by_pointer(20) + narrow(3);
	std::function<unsigned(const Row &, int)> of = &Row::member;
	Row row{7000};
	sum += of(row, 3) + row.member(9);
	printf("%u\n", sum);
	usleep(200000);
	return 0;
}
//: UNIT other.cpp
#include <fcntl.h>
#include <unistd.h>

static int other = -1;

void next(long at)
{
	unsigned char c = 0;
	if (other < 0)
		other = open("data", O_RDONLY);
	pread(other, &c, 1, at * 1000);
}
