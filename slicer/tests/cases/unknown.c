// The prefetch thread also runs an external function that decides where the program reads: its
// process is private and can do nothing that is visible outside.
//: KEEPS prefetch_pread(fd, 1, mystery(&where))
//: KEEPS where.next = 5;
//: DROPS where.other
//: ASSUMED mystery() may be run in the prefetch thread
#include <fcntl.h>
#include <unistd.h>

struct place { long next; };
struct rest { long other; };
long mystery(struct place *where);

int main(void)
{
	char c;
	struct place where;
	struct rest rest;
	int fd = open("data", O_RDONLY);
	where.next = 5;
	rest.other = 6;
	pread(fd, &c, 1, mystery(&where));
	return 0;
}
