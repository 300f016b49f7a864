/* rights.c - the prefetch process has few rights, and none that the program has given up. */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <linux/securebits.h>
#include <poll.h>
#include <sched.h>
#include <stddef.h>
#include <sys/fsuid.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

#define NOBODY 65534
#define SKIPPED 77

/* Lives as long as the program keeps it. */
static void waits(int argc, char **argv) {
    (void)argc, (void)argv;
    foreread_synchronize(1, FOREREAD_WAIT);
}

/* ---- the calls ---- */

static int do_setuid(void) { return setuid(NOBODY); }
static int do_setgid(void) { return setgid(NOBODY); }
static int do_seteuid(void) { return seteuid(NOBODY); }
static int do_setegid(void) { return setegid(NOBODY); }
static int do_setreuid(void) { return setreuid(NOBODY, NOBODY); }
static int do_setregid(void) { return setregid(NOBODY, NOBODY); }
static int do_setresuid(void) { return setresuid(NOBODY, NOBODY, NOBODY); }
static int do_setresgid(void) { return setresgid(NOBODY, NOBODY, NOBODY); }
static int do_setgroups(void) { return setgroups(0, NULL); }
static int do_initgroups(void) { return initgroups("nobody", NOBODY); }
static int do_setfsuid(void) { return setfsuid(NOBODY) != 0; }
static int do_setfsgid(void) { return setfsgid(NOBODY) != 0; }
static int do_chroot(void) { return chroot("/"); }
static int do_unshare(void) { return unshare(CLONE_NEWUTS); }

static int do_setns(void) {
    int fd = open("/proc/self/ns/uts", O_RDONLY | O_CLOEXEC);
    int answer = setns(fd, CLONE_NEWUTS);
    close(fd);
    return answer;
}

/* The C library's headers do not declare it. */
int capset(void *version, const void *rights);

static struct __user_cap_header_struct version = {_LINUX_CAPABILITY_VERSION_3, 0};
static struct __user_cap_data_struct none[_LINUX_CAPABILITY_U32S_3];

static int do_capset(void) { return capset(&version, none); }
static int do_bound(void) { return prctl(PR_CAPBSET_DROP, CAP_SYS_TIME, 0, 0, 0); }
static int do_ambient(void) { return prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0); }
static int do_secure(void) { return prctl(PR_SET_SECUREBITS, SECBIT_NOROOT, 0, 0, 0); }
static int do_no_new(void) { return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); }
static int do_dumpable(void) { return prctl(PR_SET_DUMPABLE, 0, 0, 0, 0); }

/* By syscall(), with a number. */
static int by_setuid(void) { return (int)syscall(SYS_setuid, NOBODY); }
static int by_setgroups(void) { return (int)syscall(SYS_setgroups, 0, NULL); }
static int by_capset(void) { return (int)syscall(SYS_capset, &version, none); }
static int by_chroot(void) { return (int)syscall(SYS_chroot, "/"); }
static int by_unshare(void) { return (int)syscall(SYS_unshare, CLONE_NEWUTS); }

static int by_pivot(void) {
    char old[512];
    snprintf(old, sizeof old, "%s/old", path_of("root"));
    return (int)syscall(SYS_pivot_root, path_of("root"), old);
}

/* Calls that a program needs to read and write, and that this test makes afterwards. Any other call kills. */
static const int allowed[] = {SYS_read, SYS_pread64, SYS_write, SYS_exit_group, SYS_ppoll,
#ifdef SYS_poll
                              SYS_poll,
#endif
};
#define ALLOWED (sizeof allowed / sizeof allowed[0])

static struct sock_fprog *filter(void) {
    static struct sock_filter code[ALLOWED + 3];
    static struct sock_fprog program = {ALLOWED + 3, code};
    code[0] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    for (size_t n = 0; n < ALLOWED; n++)
        code[n + 1] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)allowed[n],
                                                   (unsigned char)(ALLOWED - n), 0);
    code[ALLOWED + 1] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
    code[ALLOWED + 2] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    return &program;
}

static int do_filter(void) { return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, filter(), 0, 0); }
static int by_filter(void) { return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, filter()); }
static int by_prctl(void) { return (int)syscall(SYS_prctl, PR_SET_SECCOMP, SECCOMP_MODE_FILTER, filter(), 0, 0); }

static const struct {
    const char *name;
    int (*make)(void);
} calls[] = {
    {"setuid", do_setuid},       {"setgid", do_setgid},       {"seteuid", do_seteuid},
    {"setegid", do_setegid},     {"setreuid", do_setreuid},   {"setregid", do_setregid},
    {"setresuid", do_setresuid}, {"setresgid", do_setresgid}, {"setgroups", do_setgroups},
    {"initgroups", do_initgroups}, {"setfsuid", do_setfsuid}, {"setfsgid", do_setfsgid},
    {"chroot", do_chroot},       {"unshare", do_unshare},     {"setns", do_setns},
    {"capset", do_capset},       {"bounding set", do_bound},  {"ambient set", do_ambient},
    {"secure bits", do_secure},  {"no new privileges", do_no_new}, {"dumpable", do_dumpable},
    {"setuid by number", by_setuid}, {"setgroups by number", by_setgroups},
    {"capset by number", by_capset}, {"chroot by number", by_chroot},
    {"unshare by number", by_unshare}, {"filter", do_filter},
    {"filter by number", by_filter}, {"prctl by number", by_prctl},
    /* Last, because it moves the test's own root, too. */
    {"pivot_root by number", by_pivot},
};
#define CALLS (sizeof calls / sizeof calls[0])

static bool has_ended(int process, int milliseconds) {
    struct pollfd ends = {.fd = process, .events = POLLIN};
    return poll(&ends, 1, milliseconds) == 1;
}

/* A descriptor of a process, to find out whether it has ended. */
static int watch(pid_t pid) {
    int process = (int)syscall(SYS_pidfd_open, pid, 0);
    CHECK(process >= 0 && !has_ended(process, 0));
    return process;
}

/* Makes a call. When it returns there is no prefetch process any more, and the program continues. */
static int gives_up(int argc, char **argv) {
    CHECK(argc == 3);
    int process = watch(slicing_process());
    int n = atoi(argv[2]);
    errno = 0;
    if (calls[n].make() != 0) {
        printf("%s: %s\n", calls[n].name, strerror(errno));
        return SKIPPED;
    }
    if (!has_ended(process, 0))
        return 1;
    /* Under the filter a call that rings would kill the program. */
    for (int count = 0; count < 100; count++)
        foreread_call();
    foreread_synchronize(1, FOREREAD_SIGNAL);
    foreread_send(0, "data", 4);
    return write(STDOUT_FILENO, "alive", 5) == 5 ? 9 : 2;
}

/* A call that fails changes nothing. */
static int fails(int argc, char **argv) {
    (void)argc, (void)argv;
    int process = watch(slicing_process());
    CHECK(chroot("/nowhere/at/all") != 0 && errno == ENOENT);
    CHECK(setns(-1, 0) != 0 && errno == EBADF);
    CHECK(prctl(PR_CAPBSET_DROP, 1000, 0, 0, 0) != 0 && errno == EINVAL);
    CHECK(syscall(SYS_capset, NULL, NULL) != 0 && errno == EFAULT);
    CHECK(!has_ended(process, 0));
    return 9;
}

/* By a system call that neither the runtime nor the C library sees. */
static int unseen(int argc, char **argv) {
    (void)argc, (void)argv;
    int process = watch(slicing_process());
#ifdef __x86_64__
    long answer;
    __asm__ volatile("syscall" : "=a"(answer) : "0"(SYS_setuid), "D"(NOBODY) : "rcx", "r11", "memory");
    CHECK(answer == 0);
#else
    return SKIPPED;
#endif
    CHECK(has_ended(process, 20000));
    return 9;
}

/* A line of /proc/PID/status, as a number. */
static unsigned long long status_of(pid_t pid, const char *line, int base) {
    char path[64], text[4096];
    snprintf(path, sizeof path, "/proc/%d/status", (int)pid);
    FILE *file = fopen(path, "r");
    unsigned long long value = ~0ull;
    while (file != NULL && fgets(text, sizeof text, file) != NULL)
        if (strncmp(text, line, strlen(line)) == 0)
            value = strtoull(text + strlen(line), NULL, base);
    if (file != NULL)
        fclose(file);
    return value;
}

static int has_few(int argc, char **argv) {
    (void)argc, (void)argv;
    pid_t pid = slicing_process();
    const unsigned long long most = 1ull << CAP_DAC_READ_SEARCH | 1ull << CAP_FOWNER | 1ull << CAP_SYS_PTRACE;
    CHECK((status_of(pid, "CapPrm:", 16) & ~most) == 0);
    CHECK((status_of(pid, "CapEff:", 16) & ~most) == 0);
    CHECK(status_of(pid, "CapInh:", 16) == 0 && status_of(pid, "CapAmb:", 16) == 0);
    CHECK(status_of(pid, "NoNewPrivs:", 10) == 1);
    /* The program still has its rights. */
    CHECK(status_of(getpid(), "NoNewPrivs:", 10) == 0);
    return 9;
}

static bool is_hidden(const void *given) {
    /* The /proc files of a process that may not be dumped belong to root, whoever it runs as. */
    char path[64];
    struct stat facts;
    snprintf(path, sizeof path, "/proc/%d/status", *(const int *)given);
    return stat(path, &facts) == 0 && facts.st_uid == 0;
}

/* The process is born as a user without rights. */
static int hides(int argc, char **argv) {
    CHECK(setgroups(0, NULL) == 0 && setgid(NOBODY) == 0 && setuid(NOBODY) == 0);
    CHECK(prctl(PR_SET_DUMPABLE, 1, 0, 0, 0) == 0);
    foreread_create_prefetch_thread(waits, argc, argv);
    /* The prefetch process has one of the next process IDs, unless many other processes start at the same time. */
    pid_t pid = 0;
    for (double end = now() + 20; pid == 0 && now() < end; sleep_ms(2))
        for (pid_t next = getpid() + 1; next < getpid() + 2000 && pid == 0; next++) {
            char path[64], name[32] = {0};
            snprintf(path, sizeof path, "/proc/%d/comm", (int)next);
            FILE *file = fopen(path, "r");
            if (file != NULL && fgets(name, sizeof name, file) != NULL && strcmp(name, "foreread-pre\n") == 0 &&
                status_of(next, "Uid:", 10) == NOBODY)
                pid = next;
            if (file != NULL)
                fclose(file);
        }
    if (pid == 0)
        return SKIPPED;
    CHECK(comes_true(is_hidden, &pid));
    /* Even its own user cannot read its memory. */
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/mem", (int)pid);
    CHECK(open(path, O_RDONLY) < 0 && errno == EACCES);
    return 9;
}

static void as_root(void) {
    if (geteuid() != 0) {
        printf("  not root: no rights to give up\n");
        exit(SKIPPED);
    }
    setenv("FOREREAD_PREEXEC", "1", 1);
}

static bool passes(const char *scenario, const char *argument) {
    /* Without the report, because a process that ends at once cannot write it in time. */
    struct outcome outcome = run(scenario, argument);
    int status = WIFEXITED(outcome.status) ? WEXITSTATUS(outcome.status) : -1;
    if (status == SKIPPED)
        printf("  skipped: %s", outcome.out);
    return status == 9 || status == SKIPPED;
}

/* A new root folder, in the test's own mount name space. */
static void make_root(void) {
    const char *root = path_of("root");
    char old[512];
    snprintf(old, sizeof old, "%s/old", root);
    CHECK(mkdir(root, 0700) == 0);
    if (unshare(CLONE_NEWNS) == 0 && mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
        mount("none", root, "tmpfs", 0, NULL) == 0)
        CHECK(mkdir(old, 0700) == 0);
}

static void test_calls(void) {
    as_root();
    make_root();
    setenv("CHECK_UNREPORTED", "1", 1);
    for (size_t n = 0; n < CALLS; n++) {
        char number[16];
        snprintf(number, sizeof number, "%zu", n);
        if (!passes("gives_up", number))
            FAIL("%s leaves a prefetch process", calls[n].name);
    }
}

static void test_failing(void) {
    as_root();
    CHECK(passes("fails", NULL));
}

static void test_unseen(void) {
    as_root();
    setenv("CHECK_UNREPORTED", "1", 1);
    CHECK(passes("unseen", NULL));
}

static void test_few(void) {
    as_root();
    CHECK(passes("has_few", NULL));
}

static void test_hidden(void) {
    as_root();
    CHECK(passes("hides", NULL));
}

int main(int argc, char **argv) {
    const struct scenario scenarios[] = {
        {"gives_up", waits, gives_up}, {"fails", waits, fails}, {"unseen", waits, unseen},
        {"has_few", waits, has_few},   {"hides", NULL, hides},  {0},
    };
    const struct test tests[] = {
        {"when a program has given up rights there is no process with them", test_calls},
        {"a call that fails ends nothing", test_failing},
        {"rights given up by a bare system call end it soon", test_unseen},
        {"it has the rights to read, and no more", test_few},
        {"its memory is shown to nobody", test_hidden},
        {0},
    };
    return check_main(argc, argv, scenarios, tests);
}
