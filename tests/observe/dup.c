/* dup, dup2, dup3 and fcntl: descriptors that share one cursor and outlive each other. */
#include "observe.h"
int main(int argc, char **argv) {
    char buffer[100];
    int fd = check(open(argv[argc - 1], O_RDONLY));
    check(read(fd, buffer, 10));
    int two = check(dup(fd));
    check(read(two, buffer, 20));
    check(read(fd, buffer, 30));
    int three = check(dup2(fd, 77));
    check(read(three, buffer, 40));
    int four = check(dup3(two, 78, O_CLOEXEC));
    check(read(four, buffer, 50));
    int five = check(fcntl(fd, F_DUPFD, 80));
    check(close(fd));
    check(read(five, buffer, 60));
    int six = check(fcntl(five, F_DUPFD_CLOEXEC, 90));
    check(lseek(six, 1000, SEEK_SET));
    check(read(two, buffer, 70));
    /* Another file gets the number of a duplicate. */
    int other = check(open("/etc/passwd", O_RDONLY));
    check(dup2(other, 77));
    check(read(77, buffer, 5));
    /* The last descriptor is the only one with the cursor until it is duplicated again. */
    check(close(two));
    check(close(four));
    check(close(six));
    check(read(five, buffer, 80));
    check(read(five, buffer, 90));
    int seven = check(dup(five));
    check(read(seven, buffer, 15));
    check(read(five, buffer, 25));
    return 0;
}
