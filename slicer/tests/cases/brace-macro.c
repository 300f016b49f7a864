// The brace of main is in the middle of a macro: nothing can be inserted there.
//: STATUS main refused
//: WHY main its brace stands in a macro
//: UNCHANGED
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#define PROGRAM(body) int main(void) { unsigned char c; int fd = open("data", O_RDONLY); body return 0; }

PROGRAM(for (int i = 0; i < 20; i++) { pread(fd, &c, 1, i * 1000); printf("%d\n", c); })
