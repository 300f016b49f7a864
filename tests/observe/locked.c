/* As an unprivileged user with the usual limit: locks all its memory after some reads by two threads. Prints the size of its
 * mappings of memory files (memfd), in KiB, and the part of it that a core file would contain. */
#include "observe.h"
#include <sys/resource.h>
static const char *data;
static void *reads(void *argument) {
    char buffer[16];
    int fd = check(open(data, O_RDONLY));
    check(read(fd, buffer, 16));
    return argument;
}
int main(int argc, char **argv) {
    data = argv[argc - 1];
    reads(NULL);
    pthread_attr_t small;
    pthread_attr_init(&small);
    pthread_attr_setstacksize(&small, 64 << 10);
    pthread_t thread;
    check(-pthread_create(&thread, &small, reads, NULL));
    check(-pthread_join(thread, NULL));
    FILE *file = need(fopen("/proc/self/smaps", "r"));
    char line[500];
    long mapped = 0, dumped = 0, size = 0;
    int ours = 0;
    while (fgets(line, sizeof line, file)) {
        unsigned long from, to;
        if (sscanf(line, "%lx-%lx ", &from, &to) == 2)
            ours = strstr(line, "memfd:") != NULL, size = (to - from) / 1024, mapped += ours ? size : 0;
        else if (strncmp(line, "VmFlags:", 8) == 0)
            dumped += ours && !strstr(line, " dd") ? size : 0;
    }
    fclose(file);
    check(setresuid(65534, 65534, 65534));
    struct rlimit limit = {8 << 20, 8 << 20};
    check(setrlimit(RLIMIT_MEMLOCK, &limit));
    int locked = mlockall(MCL_CURRENT | MCL_FUTURE);
    printf("locked %d\n", locked);
    fprintf(stderr, "%ld %ld\n", mapped, dumped);
    return 0;
}
