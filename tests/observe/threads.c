/* Four threads, each with its own stride of one file, then one after the other. */
#include "observe.h"
static int fd;
static void *run(void *argument) {
    char buffer[100];
    long me = (long)argument;
    for (long i = 0; i < 1000; i++)
        check(pread(fd, buffer, 10 + me, (i * 4 + me) * 4));
    return NULL;
}
int main(int argc, char **argv) {
    pthread_t threads[4];
    fd = check(open(argv[argc - 1], O_RDONLY));
    for (long i = 0; i < 4; i++)
        check(pthread_create(&threads[i], NULL, run, (void *)i));
    for (long i = 0; i < 4; i++)
        check(pthread_join(threads[i], NULL));
    /* More threads than rings, but not at once. On a busy machine the collector may miss some. */
    for (long i = 0; i < 300; i++) {
        check(pthread_create(&threads[0], NULL, run, (void *)5));
        check(pthread_join(threads[0], NULL));
        usleep(2000);
    }
    return 0;
}
