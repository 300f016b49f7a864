/* refused CALL COMMAND...: executes a command under a filter that refuses one system call. */
#define _GNU_SOURCE
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static const struct {
    const char *name;
    int number;
} calls[] = {
    {"rt_sigprocmask", SYS_rt_sigprocmask},
    {"signalfd", SYS_signalfd4},
    {"memfd_create", SYS_memfd_create},
    {"socketpair", SYS_socketpair},
    {"clone", SYS_clone},
};

/* Ends the program if the call failed. */
static void check(int value)
{
    if (value < 0) {
        perror("refused");
        exit(99);
    }
}

int main(int argc, char **argv)
{
    if (argc < 3)
        return 2;
    size_t call = 0, count = sizeof calls / sizeof *calls;
    while (call < count && strcmp(calls[call].name, argv[1]) != 0)
        call++;
    if (call == count)
        return 2;
    struct sock_filter steps[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, calls[call].number, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {sizeof steps / sizeof *steps, steps};
    check(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
    check(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program));
    check(execvp(argv[2], argv + 2));
    return 99;
}
