/*
 * filter.c - the system calls of the prefetch process.
 *
 * An allow-list in the kernel's own filter language (seccomp(2)), inherited by all threads. The calls on it read,
 * wait, or concern memory and threads of this process alone. All other calls fail and have no effect: clone3() with
 * ENOSYS, the others with EPERM; a call of another architecture kills the process. No file is written, created or
 * removed, nothing is sent, no other process is signalled or started.
 *
 * The filter is a list of rules, each of a call and at most one condition on an argument; small enough to be read as
 * one. Conditions compare the low 32 bits of an argument: the kernel uses no more of descriptors, flags and
 * commands.
 */
#include "quarantine.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/fs.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <linux/fiemap.h>

#include "raw.h"
#include "residency.h"

#if defined __x86_64__
#define ARCHITECTURE AUDIT_ARCH_X86_64
#elif defined __aarch64__
#define ARCHITECTURE AUDIT_ARCH_AARCH64
#else
#error "the numbers of system calls are per architecture: add it here"
#endif

/* Not in the headers of older systems; the same number on all architectures. */
#ifndef SYS_faccessat2
#define SYS_faccessat2 439
#endif

#ifndef PR_GET_AUXV
#define PR_GET_AUXV 0x41555856
#endif

/* A condition on argument `argument`. */
enum test {
    ALWAYS,
    /* (argument & mask) == value. */
    MASKED,
};

struct rule {
    int call;
    enum test test;
    unsigned argument;
    uint32_t mask;
    uint32_t value;
};

#define CALL(name) {SYS_##name, ALWAYS, 0, 0, 0}
#define WHERE(name, argument, value) {SYS_##name, MASKED, argument, ~UINT32_C(0), value}
#define WHERE_BITS(name, argument, mask, value) {SYS_##name, MASKED, argument, mask, value}

/* Flags of open() that write or create a file. */
#define OPEN_WRITES (O_ACCMODE | O_CREAT | O_TRUNC | (O_TMPFILE & ~O_DIRECTORY))
/* Flags of a new thread of this process. */
#define THREAD (CLONE_VM | CLONE_FS | CLONE_SIGHAND | CLONE_THREAD)

static const struct rule rules[] = {
    /* Files: lookups and reads. Most frequent first. */
    CALL(futex),
    CALL(pread64),
    CALL(fadvise64),
    CALL(cachestat),
    CALL(read),
    CALL(readv),
    CALL(preadv),
    CALL(preadv2),
    CALL(readahead),
    CALL(lseek),
    CALL(fstat),
    CALL(newfstatat),
    CALL(statx),
    CALL(close),
    WHERE_BITS(openat, 2, OPEN_WRITES, O_RDONLY),
    CALL(faccessat),
    CALL(faccessat2),
    CALL(readlinkat),
    CALL(getdents64),
    CALL(statfs),
    CALL(fstatfs),
    CALL(getcwd),
    CALL(chdir),
    CALL(fchdir),
    CALL(umask),
#ifdef __x86_64__
    WHERE_BITS(open, 1, OPEN_WRITES, O_RDONLY),
    CALL(stat),
    CALL(lstat),
    CALL(access),
    CALL(readlink),
    CALL(dup2),
    CALL(poll),
    CALL(time),
#endif
    /* Descriptors of this process. No locks, leases or signals by fcntl(). */
    CALL(dup),
    CALL(dup3),
    CALL(close_range),
    WHERE(fcntl, 1, F_DUPFD),
    WHERE(fcntl, 1, F_DUPFD_CLOEXEC),
    WHERE(fcntl, 1, F_GETFD),
    WHERE(fcntl, 1, F_SETFD),
    WHERE(fcntl, 1, F_GETFL),
    WHERE(ioctl, 1, FS_IOC_FIEMAP),
    WHERE(ioctl, 1, TCGETS),
    CALL(ppoll),
    /* Memory. */
    CALL(mmap),
    CALL(munmap),
    CALL(mprotect),
    CALL(mremap),
    CALL(madvise),
    CALL(mincore),
    CALL(brk),
    /* Threads. clone3() has its flags in memory, where a filter cannot check them: it fails with ENOSYS, and the C
     * library uses clone() instead. */
    WHERE_BITS(clone, 0, THREAD, THREAD),
    WHERE(unshare, 0, CLONE_FILES),
    CALL(set_robust_list),
    CALL(rseq),
    CALL(exit),
    CALL(exit_group),
    CALL(gettid),
    CALL(sched_yield),
    CALL(sched_getaffinity),
    CALL(sched_getparam),
    CALL(sched_getscheduler),
    /* For the calling thread, which can get no more than it was born with. */
    WHERE(sched_setattr, 0, 0),
    CALL(membarrier),
    CALL(restart_syscall),
    WHERE(prctl, 0, PR_SET_NAME),
    WHERE(prctl, 0, PR_GET_NAME),
    WHERE(prctl, 0, PR_SET_VMA),
    WHERE(prctl, 0, PR_GET_AUXV),
    /* Signals of this process; tgkill() is added with its number. */
    CALL(rt_sigaction),
    CALL(rt_sigprocmask),
    CALL(rt_sigreturn),
    CALL(sigaltstack),
    /* Time, and information. */
    CALL(clock_gettime),
    CALL(clock_getres),
    CALL(clock_nanosleep),
    CALL(nanosleep),
    CALL(gettimeofday),
    CALL(times),
    CALL(getrusage),
    /* For this process alone. */
    WHERE(prlimit64, 0, 0),
    CALL(getrlimit),
    CALL(sysinfo),
    CALL(uname),
    CALL(getcpu),
    CALL(getrandom),
    CALL(getpid),
    CALL(getpriority),
    CALL(getppid),
    CALL(getuid),
    CALL(geteuid),
    CALL(getgid),
    CALL(getegid),
    CALL(getpgid),
    CALL(getsid),
    CALL(getgroups),
};
#define RULES (sizeof rules / sizeof rules[0])

/* Offset of the low half of an argument. */
#define ARGUMENT(n) (offsetof(struct seccomp_data, args) + (n) * sizeof(uint64_t))
_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the low half comes first");

#define LOAD(offset) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, (uint32_t)(offset))
#define UNLESS(value, skip) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)(value), 0, skip)
#define RETURN(action) BPF_STMT(BPF_RET | BPF_K, (action))

/* A filter under construction. The longest rule takes six instructions. */
struct program {
    struct sock_filter code[6 * (RULES + 4)];
    unsigned short length;
};

static void add(struct program *program, struct sock_filter instruction) {
    program->code[program->length++] = instruction;
}

/* Expects the call's number in the accumulator, and leaves it there. */
static void add_rule(struct program *program, const struct rule *rule) {
    if (rule->test == ALWAYS) {
        add(program, (struct sock_filter)UNLESS(rule->call, 1));
        add(program, (struct sock_filter)RETURN(SECCOMP_RET_ALLOW));
        return;
    }
    add(program, (struct sock_filter)UNLESS(rule->call, 5));
    add(program, (struct sock_filter)LOAD(ARGUMENT(rule->argument)));
    add(program, (struct sock_filter)BPF_STMT(BPF_ALU | BPF_AND | BPF_K, rule->mask));
    add(program, (struct sock_filter)UNLESS(rule->value, 1));
    add(program, (struct sock_filter)RETURN(SECCOMP_RET_ALLOW));
    add(program, (struct sock_filter)LOAD(offsetof(struct seccomp_data, nr)));
}

bool quarantine_calls(int report) {
    static struct program program;
    add(&program, (struct sock_filter)LOAD(offsetof(struct seccomp_data, arch)));
    add(&program, (struct sock_filter)UNLESS(ARCHITECTURE, 1));
    add(&program, (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JA, 1, 0, 0));
    add(&program, (struct sock_filter)RETURN(SECCOMP_RET_KILL_PROCESS));
    /* x86-64's x32 calls have other numbers, which are not on the list. */
    add(&program, (struct sock_filter)LOAD(offsetof(struct seccomp_data, nr)));
    for (size_t n = 0; n < RULES; n++)
        add_rule(&program, &rules[n]);
    const struct rule self = WHERE(tgkill, 0, (uint32_t)getpid());
    add_rule(&program, &self);
    if (report >= 0) {
        const struct rule writes = WHERE(write, 0, (uint32_t)report);
        add_rule(&program, &writes);
    }
    add(&program, (struct sock_filter)UNLESS(SYS_clone3, 1));
    add(&program, (struct sock_filter)RETURN(SECCOMP_RET_ERRNO | ENOSYS));
    add(&program, (struct sock_filter)RETURN(SECCOMP_RET_ERRNO | EPERM));
    struct sock_fprog filter = {program.length, program.code};
    return raw_call(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &filter) == 0;
}
