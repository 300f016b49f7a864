// A structure that is copied as bytes, into one of another type and through an array.
//: KEEPS memcpy(&mine, &theirs, sizeof mine)
//: KEEPS through_bytes(&theirs)
//: DATA data 65536
//: RUN
//: COUNTS
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct theirs { int kind; long at; long more; };
struct mine { int kind; long at; };
struct third { int kind; long at; long more; };

static struct theirs theirs;

static long through_bytes(struct theirs *s)
{
	char bytes[sizeof(struct theirs)] __attribute__((aligned(8)));
	memcpy(bytes, s, sizeof *s);
	struct third *t = (struct third *)bytes;
	t->at += 2;
	return t->at;
}

int main(void)
{
	char buf[64];
	struct mine mine;
	int fd = open("data", O_RDONLY);
	for (int i = 0; i < 40; i++) {
		theirs.at += 17;
		memcpy(&mine, &theirs, sizeof mine);
		pread(fd, buf, sizeof buf, mine.at * 64);
		pread(fd, buf, 1, through_bytes(&theirs) * 64);
	}
	printf("%ld\n", theirs.at);
	return 0;
}
