/* The only thread cancels itself, which takes effect in its next read, one of many equal reads. */
#include "observe.h"
static int expected;
static void clean(void *argument) {
    exit(expected && argument ? 0 : 1);
}
int main(int argc, char **argv) {
    char buffer[4];
    int fd = check(open(argv[argc - 1], O_RDONLY));
    pthread_cleanup_push(clean, argv);
    for (int n = 0; n < 1000; n++)
        check(read(fd, buffer, 4));
    check(pthread_cancel(pthread_self()));
    expected = 1;
    for (int n = 0; n < 1000; n++)
        check(read(fd, buffer, 4));
    expected = 0;
    pthread_cleanup_pop(1);
    return 2;
}
