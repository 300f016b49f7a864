// A test for less than zero whose branch continues elsewhere is no failure: it is half of a search.
//: KEEPS if (c < 0)
//: KEEPS at = n.left % 60;
//: KEEPS at = n.right % 60;
//: DATA data 4096
//: RUN
//: COUNTS
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct node { unsigned char key[4], left, right; };

int main(void)
{
	struct node n;
	unsigned at = 0;
	int left = 0, fd = open("data", O_RDONLY);
	for (int i = 0; i < 50; i++) {
		if (pread(fd, &n, sizeof n, at * 64) != sizeof n)
			return 1;
		int c = memcmp(n.key, "\x80\0\0", 4);
		if (c < 0) {
			left++;
			at = n.left % 60;
			continue;
		}
		at = n.right % 60;
	}
	printf("%d %u\n", left, at);
	return 0;
}
