/* heir HOW [PROGRAM] FILE: installs a system-call filter and executes itself, or PROGRAM, under it, which reads FILE. The filter
 * allows the calls with which a dynamically linked program starts, and kills for calls that neither the start nor the program makes.
 * It is installed by the C library's function (`library`), by system calls that no library sees (`own`), or by such calls in a child
 * (`child`). */
#include "observe.h"
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>

static const int REFUSED[] = {
    /* Calls by a loader that loads foreread's library; these may be refused if the library is left out. */
    SYS_readlink,
    SYS_getpid, SYS_getppid, SYS_gettid, SYS_geteuid, SYS_fcntl, SYS_readlinkat, SYS_mremap, SYS_madvise, SYS_prctl, SYS_lseek,
    SYS_getcwd, SYS_fadvise64, SYS_statfs, SYS_nanosleep, SYS_process_vm_readv, SYS_faccessat2,
};
enum { COUNT = sizeof REFUSED / sizeof *REFUSED };

static long own(long number, long a, long b, long c) {
    long result = number;
#if defined __x86_64__
    __asm__ volatile("syscall" : "+a"(result) : "D"(a), "S"(b), "d"(c) : "rcx", "r11", "memory");
#else
    result = syscall(number, a, b, c);
#endif
    return result;
}

static void filter(int is_own) {
    struct sock_filter steps[2 * COUNT + 2] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr))};
    struct sock_filter *next = steps + 1;
    for (int one = is_own; one < COUNT; one++) {
        *next++ = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, REFUSED[one], 0, 1);
        *next++ = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
    }
    *next++ = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    struct sock_fprog program = {next - steps, steps};
    check(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
    if (is_own)
        check(own(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, (long)&program));
    else
        check(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program));
}

/* The program that runs under the filter from its start, and ends as soon as there is no file `hold`. */
static int heir(const char *path) {
    static char buffer[100];
    struct stat stat;
    unsigned long sum = 0;
    int fd = check(open(path, O_RDONLY));
    check(fstatat(AT_FDCWD, path, &stat, 0));
    for (int i = 0; i < 100; i++) {
        check(read(fd, buffer, 10));
        check(pread(fd, buffer + 10, 10, i * 50));
        for (int at = 0; at < 20; at++)
            sum = sum * 31 + buffer[at];
    }
    int len = snprintf(buffer, sizeof buffer, "%lx\n", sum);
    check(write(1, buffer, len));
    while (access("hold", F_OK) == 0)
        usleep(1000);
    return 7;
}

int main(int argc, char **argv) {
    char *path = argv[argc - 1], *how = argv[1];
    if (strcmp(how, "heir") == 0)
        return heir(path);
    pid_t child = 0;
    if (strcmp(how, "child") == 0)
        child = check(fork());
    if (child != 0) {
        int status;
        check(waitpid(child, &status, 0));
        return WIFEXITED(status) ? WEXITSTATUS(status) : 99;
    }
    filter(strcmp(how, "library") != 0);
    /* Nothing may be reported of a program that cannot be started. */
    char *program = argc > 3 ? argv[2] : argv[0], *words[] = {program, "heir", path, NULL};
    execv("/does/not/exist", words);
    check(execv(program, words));
    return 99;
}
