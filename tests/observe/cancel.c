/* A thread that is cancelled within a read is unwound through the hook. */
#include "observe.h"
static int pipes[2], cleaned;
static volatile int begun;
static void clean(void *argument) {
    cleaned = argument != NULL;
}
static void *run(void *argument) {
    char buffer[10];
    pthread_cleanup_push(clean, argument);
    check(pread(*(int *)argument, buffer, 10, 0));
    begun = 1;
    check(read(pipes[0], buffer, 10));
    pthread_cleanup_pop(0);
    return NULL;
}
int main(int argc, char **argv) {
    pthread_t thread;
    void *result;
    int fd = check(open(argv[argc - 1], O_RDONLY));
    check(pipe(pipes));
    check(pthread_create(&thread, NULL, run, &fd));
    /* On a busy machine the thread may start late. It then gets time to enter its second read. */
    while (!begun)
        usleep(1000);
    usleep(20000);
    check(pthread_cancel(thread));
    check(pthread_join(thread, &result));
    return result == PTHREAD_CANCELED && cleaned ? 0 : 1;
}
