/* One thread loads and unloads an object all the time; the others fork children that open and read. Then an object is loaded whose
 * constructor waits for a thread that reads in every way for the first time. */
#include "observe.h"
#include <dlfcn.h>
#ifdef CONSTRUCTOR
static void *reads(void *argument) {
    char buffer[32];
    struct iovec part = {buffer, 32};
    (void)argument;
    int fd = check(open(getenv("DATA"), O_RDONLY)), out = check(open("/dev/null", O_WRONLY));
    check(readv(fd, &part, 1));
    check(preadv(fd, &part, 1, 50));
    check(preadv2(fd, &part, 1, 90, 0));
    check(pread(fd, buffer, 5, 9));
    check(lseek(fd, 100, SEEK_SET));
    check(sendfile(out, fd, NULL, 10));
    FILE *file = need(fdopen(fd, "r"));
    need(fgets(buffer, 10, file));
    fclose(file);
    return NULL;
}
__attribute__((constructor)) static void waits(void) {
    pthread_t thread;
    check(-pthread_create(&thread, NULL, reads, NULL));
    check(-pthread_join(thread, NULL));
}
#else
static volatile int done;
static void *loads(void *argument) {
    (void)argument;
    while (!done)
        dlclose(need(dlopen("libm.so.6", RTLD_NOW)));
    return NULL;
}
static void *forks(void *data) {
    for (int i = 0; i < 60; i++) {
        pid_t child = check(fork());
        if (child == 0) {
            char buffer[16];
            alarm(20);
            int fd = check(open(data, O_RDONLY));
            check(read(fd, buffer, 16));
            check(fcntl(fd, F_GETFL));
            _exit(i % 7);
        }
        int status;
        check(waitpid(child, &status, 0));
        if (status != i % 7 << 8)
            exit(3);
    }
    return NULL;
}
int main(int argc, char **argv) {
    setenv("DATA", argv[argc - 1], 1);
    need(dlopen("./constructor.so", RTLD_NOW));
    pthread_t loading, forking[2];
    check(-pthread_create(&loading, NULL, loads, NULL));
    for (int i = 0; i < 2; i++)
        check(-pthread_create(&forking[i], NULL, forks, argv[argc - 1]));
    for (int i = 0; i < 2; i++)
        check(-pthread_join(forking[i], NULL));
    done = 1;
    check(-pthread_join(loading, NULL));
    return 0;
}
#endif
