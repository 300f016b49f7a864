/* Descriptors get the lowest free number while other threads map and unmap the file and end children. */
#include "observe.h"
static const char *data;
static volatile int done;
static void *maps(void *argument) {
    int fd = *(int *)argument;
    while (!done) {
        volatile char *map = need(mmap(NULL, 8192, PROT_READ, MAP_SHARED, fd, 0));
        (void)map[4096];
        check(munmap((void *)map, 8192));
    }
    return NULL;
}
int main(int argc, char **argv) {
    data = argv[argc - 1];
    /* Inherited descriptors. */
    closefrom(3);
    int fd = check(open(data, O_RDONLY));
    pthread_t thread[2];
    for (int i = 0; i < 2; i++)
        check(-pthread_create(&thread[i], NULL, maps, &fd));
    int wrong = 0;
    for (int i = 0; i < 100000; i++) {
        check(close(0));
        wrong += open(data, O_RDONLY) != 0;
    }
    /* All closed numbers stay closed: none of them is a descriptor of the observer. */
    for (int round = 0; round < 200; round++) {
        for (int other = fd + 1; other < 64; other++)
            wrong += close(other) == 0;
        int own[3];
        for (int i = 0; i < 3; i++)
            own[i] = check(open(data, O_RDONLY));
        for (int i = 0; i < 3; i++)
            wrong += close(own[i]) != 0;
    }
    done = 1;
    for (int i = 0; i < 2; i++)
        check(-pthread_join(thread[i], NULL));
    printf("%d\n", wrong);
    return 0;
}
