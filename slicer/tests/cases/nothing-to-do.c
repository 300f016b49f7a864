// A program that reads only its standard input has no prefetch thread.
//: UNCHANGED
//: STATUS main whole
#include <stdio.h>

int main(void)
{
	int c, n = 0;
	while ((c = getchar()) != EOF)
		n += c == '\n';
	printf("%d\n", n);
	return 0;
}
