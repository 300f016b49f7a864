/* Reads from redirected standard input: a descriptor whose opening was not seen. */
#include "observe.h"
int main(void) {
    char line[100];
    check(read(0, line, 8));
    check(pread(0, line, 16, 4096));
    while (fgets(line, sizeof line, stdin))
        ;
    return 0;
}
