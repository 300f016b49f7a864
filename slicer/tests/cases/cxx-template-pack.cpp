// Instantiations of a variadic template are sliced separately: each argument has a name.
//: STATUS sum sliced
//: STATUS each sliced
//: STATUS pass sliced
//: STATUS in_lambda sliced
//: STATUS main sliced
//: KEEPS static int pf_last_2(long at, int foreread_at_rest_1, short foreread_at_rest_2)
//: KEEPS pf_last_4(foreread_at_rest_1, foreread_at_rest_2);
//: KEEPS pf_get(foreread_at_1) + pf_get(foreread_at_2) + pf_get(foreread_at_3) + long(3UL)
//: KEEPS auto look = [foreread_at_1, foreread_at_2](int n) -> unsigned char
//: PROGRAM int all[] = {((foreread_ahead(), pread(fd, &step, 1, at)), 0)...};
//: DATA data 200000
//: RUN
//: COUNTS
#include <cstdio>
#include <fcntl.h>
#include <unistd.h>
#include <utility>

static int fd;

static int get(long at)
{
	unsigned char c = 0;
	pread(fd, &c, 1, at);
	return c;
}

// By recursion, folded, and in a list.
static int last() { return 0; }
template <typename... Rest> static int last(long at, Rest... at_rest)
{
	unsigned char c = 0;
	pread(fd, &c, 1, at + long(sizeof...(at_rest)));
	return c + last(at_rest...);
}

template <typename... T> static long sum(T... at) { return (get(at) + ... + long(sizeof...(at))); }

template <typename... T> static void each(int step, T... at)
{
	for (long place : {long(at)...}) {
		unsigned char c = 0;
		pread(fd, &c, 1, place * step);
	}
	int all[] = {(pread(fd, &step, 1, at), 0)...};
	(void)all;
}

static int two(int a, const int &b) { return get(a * 100 + b); }
template <typename F, typename... T> static auto pass(F of, T &&...at) { return of(std::forward<T>(at)...); }

template <typename... T> static int in_lambda(T... at)
{
	auto look = [at...](int n) {
		unsigned char c = 0;
		pread(fd, &c, 1, (n + ... + at));
		return c;
	};
	return look(3) + look(5000);
}

template <typename... T> static int generic(T... at)
{
	auto look = [=](auto n) { return get((n + ... + at)); };
	return look(3);
}

int main()
{
	fd = open("data", O_RDONLY);
	long total = 0;
	for (int n = 0; n < 10; n++)
		total += last(n * 300L, n * 400, short(n * 500)) + last(n * 7L);
	long place = sum(5, 700L, short(90));
	total += get(place + sum(3L));
	each(3, 70, 9000L);
	int offset = 5;
	total += pass(two, 30, offset) + pass(two, 60, 7);
	total += in_lambda(10, 2000L) + generic(30, 40L, 50);
	printf("%ld\n", total);
	usleep(200000);
	return 0;
}
