/* Confines itself and reads on: by a filter that allows little besides reading and ending, by strict mode, or without the time-stamp
 * counter. Standard input is the data file, whose opening no observer saw. */
#include "observe.h"
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>

#define ALLOW(number)                                                   \
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_##number, 0, 1),            \
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)

static void filter(int raw) {
    struct sock_filter steps[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        ALLOW(read),
        ALLOW(pread64),
        ALLOW(write),
        ALLOW(exit_group),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
    };
    struct sock_fprog program = {sizeof steps / sizeof *steps, steps};
    check(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
    if (raw)
        check(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program));
    else
        check(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program));
}

static volatile int is_there, was_read;
static void *waits(void *argument) {
    char byte;
    is_there = 1;
    /* Reads a file not read before, under a filter that another thread has installed. */
    while (__atomic_load_n((int *)argument, __ATOMIC_SEQ_CST) == 0)
        ;
    check(pread(0, &byte, 1, 77));
    was_read = 1;
    /* Ending takes more calls than the filter allows. */
    for (;;)
        ;
}

int main(int argc, char **argv) {
    const char *how = argv[1];
    char buffer[100] = {0};
    int fd = check(open(argv[argc - 1], O_RDONLY)), copy = check(dup(fd)), go = 0;
    check(read(fd, buffer, 10));
    check(close(copy));
    pthread_t thread;
    if (strcmp(how, "threads") == 0) {
        check(-pthread_create(&thread, NULL, waits, &go));
        /* Starting the thread takes more calls than the filter allows. */
        while (!is_there)
            ;
    }
    if (strcmp(how, "strict") == 0)
        check(prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT));
    else if (strcmp(how, "counter") == 0)
        check(prctl(PR_SET_TSC, PR_TSC_SIGSEGV));
    else
        filter(strcmp(how, "raw") == 0 || strcmp(how, "threads") == 0);
    __atomic_store_n(&go, 1, __ATOMIC_SEQ_CST);
    while (strcmp(how, "threads") == 0 && !was_read)
        ;
    long sum = 0;
    for (int i = 0; i < 100; i++) {
        check(read(fd, buffer, 10));
        check(read(0, buffer + 10, 10));
        if (strcmp(how, "strict") != 0)
            check(pread(fd, buffer + 20, 10, i * 50));
        for (int at = 0; at < 30; at++)
            sum = sum * 31 + buffer[at];
    }
    int len = snprintf(buffer, sizeof buffer, "%lx\n", sum);
    check(write(1, buffer, len));
    /* Strict mode allows no exit except that of a thread. */
    if (strcmp(how, "strict") == 0)
        syscall(SYS_exit, 0);
    return 0;
}
