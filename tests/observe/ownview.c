/* Opens its standard input again by names that mean another file in each process: by the full path, and from within that directory. */
#include "observe.h"
int main(void) {
    char buffer[100];
    int one = check(open("/proc/self/fd/0", O_RDONLY));
    check(read(one, buffer, 10));
    check(chdir("/proc/self/fd"));
    int two = check(open("0", O_RDONLY));
    check(read(two, buffer, 12));
    return 0;
}
