// setjmp in a function of the slice: it is left whole, and so is what needs it.
//: UNCHANGED
//: STATUS main refused
//: WHY main setjmp
#include <fcntl.h>
#include <setjmp.h>
#include <unistd.h>

static jmp_buf out;

int main(void)
{
	char c;
	int fd = open("data", O_RDONLY);
	if (setjmp(out))
		return 1;
	pread(fd, &c, 1, 0);
	longjmp(out, 1);
}
