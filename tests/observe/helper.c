/* A thread like libforeread's, and one started by it, in a table of descriptors of their own, where the numbers of the program's
 * descriptors mean another file. Their reads are not the program's. */
#include "observe.h"
static const char *data, *other;
static void read_other(void) {
    char buffer[50];
    int fd = check(open(other, O_RDONLY)); /* 0 */
    check(read(fd, buffer, sizeof buffer));
    check(pread(fd, buffer, sizeof buffer, 1000));
    check(lseek(fd, 5000, SEEK_SET));
    int copy = check(dup(fd));
    check(close(copy)); /* the other stays open to the thread's end */
}
static void *start(void *unused) {
    read_other();
    return unused;
}
static void *apart(void *unused) {
    pthread_t thread;
    check(pthread_setname_np(pthread_self(), "foreread-hint-x"));
    check(syscall(SYS_close_range, 0u, ~0u, 2u)); /* CLOSE_RANGE_UNSHARE */
    check(pthread_create(&thread, NULL, start, NULL));
    check(pthread_join(thread, NULL));
    read_other();
    return unused;
}
int main(int argc, char **argv) {
    pthread_t thread;
    char buffer[100];
    data = argv[argc - 2], other = argv[argc - 1];
    check(close(0));
    int fd = check(open(data, O_RDONLY)); /* 0 */
    check(read(fd, buffer, 100));
    check(pthread_create(&thread, NULL, apart, NULL));
    check(pthread_join(thread, NULL));
    check(read(fd, buffer, 100));
    check(pread(fd, buffer, 100, 7000));
    return 0;
}
