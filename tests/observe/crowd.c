/* More threads at once than rings. */
#include "observe.h"
enum { CROWD = 200 };
static pthread_barrier_t barrier;
static int fd;
static void *run(void *argument) {
    char buffer[16];
    for (long i = 0; i < 10; i++) {
        pthread_barrier_wait(&barrier);
        check(pread(fd, buffer, 16, (long)argument * 16));
    }
    return NULL;
}
int main(int argc, char **argv) {
    pthread_t threads[CROWD];
    fd = check(open(argv[argc - 1], O_RDONLY));
    pthread_barrier_init(&barrier, NULL, CROWD);
    for (long i = 0; i < CROWD; i++)
        check(pthread_create(&threads[i], NULL, run, (void *)i));
    for (long i = 0; i < CROWD; i++)
        check(pthread_join(threads[i], NULL));
    return 0;
}
