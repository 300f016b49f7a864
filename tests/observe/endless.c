/* Reads a given number of times, and prints a sum of the bytes. */
#include "observe.h"
int main(int argc, char **argv) {
    unsigned char buffer[64];
    long rounds = atol(argv[argc - 2]), sum = 0;
    int fd = check(open(argv[argc - 1], O_RDONLY));
    for (long i = 0; i < rounds; i++) {
        long got = check(pread(fd, buffer, sizeof buffer, i * 37 % 19900));
        for (long j = 0; j < got; j++)
            sum += buffer[j];
    }
    printf("%ld\n", sum);
    return 5;
}
