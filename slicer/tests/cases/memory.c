// A program whose translation would need too much memory is left whole.
//: ARGS --memory=80
//: UNCHANGED
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#define TEN(X) X, X, X, X, X, X, X, X, X, X
#define THOUSAND(X) TEN(TEN(TEN(X)))

static const long places[] = {TEN(TEN(THOUSAND(70000)))};

int main(void)
{
	char block[100];
	int fd = open("data", O_RDONLY);
	for (long i = 0; i < 20; i++)
		pread(fd, block, sizeof block, places[i * 5000]);
	puts(block);
	return 0;
}
