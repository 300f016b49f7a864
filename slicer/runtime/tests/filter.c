/* filter.c - system calls of a slice have no effect outside, and the calls that it needs work. */
#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "check.h"

/* The call fails because the filter refuses it. */
#define REFUSED(call) EXPECT((long)(call) == -1 && errno == EPERM)

/* Sets a thread's scheduling (sched_setattr(2)). */
static long stand(pid_t thread, uint32_t policy, int32_t nice, uint32_t priority) {
    struct {
        uint32_t size, policy;
        uint64_t flags;
        int32_t nice;
        uint32_t priority;
        uint64_t runtime, deadline, period;
    } standing = {48, policy, SCHED_FLAG_RESET_ON_FORK, nice, priority, 0, 0, 0};
    return syscall(SYS_sched_setattr, thread, &standing, 0);
}

static void harms(int argc, char **argv) {
    (void)argc, (void)argv;
    const char *victim = path_of("victim"), *other = path_of("other");
    REFUSED(write(STDOUT_FILENO, "x", 1));
    REFUSED(write(STDERR_FILENO, "x", 1));
    REFUSED(unlink(victim));
    REFUSED(rename(victim, other));
    REFUSED(link(victim, other));
    REFUSED(symlink(victim, other));
    REFUSED(mkdir(other, 0777));
    REFUSED(mkfifo(other, 0666));
    REFUSED(rmdir(path_of("folder")));
    REFUSED(chmod(victim, 0777));
    REFUSED(truncate(victim, 0));
    REFUSED(utimensat(AT_FDCWD, victim, NULL, 0));
    REFUSED(open(victim, O_WRONLY));
    REFUSED(open(victim, O_RDWR));
    REFUSED(open(victim, O_RDONLY | O_TRUNC));
    REFUSED(open(other, O_RDONLY | O_CREAT, 0666));
    REFUSED(open(path_of("."), O_TMPFILE | O_RDWR, 0666));
    REFUSED(kill(getppid(), SIGTERM));
    REFUSED(kill(0, SIGTERM));
    REFUSED(syscall(SYS_tgkill, 1, 1, SIGTERM));
    REFUSED(socket(AF_UNIX, SOCK_STREAM, 0));
    REFUSED(fork());
    REFUSED(syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0));
    REFUSED(execl("/bin/true", "true", (char *)NULL));
    REFUSED(prctl(PR_SET_DUMPABLE, 1));
    REFUSED(memfd_create("x", 0));
    REFUSED(stand(0, SCHED_NORMAL, -1, 0));
    REFUSED(stand(0, SCHED_FIFO, 0, 1));
    REFUSED(stand(getpid(), SCHED_NORMAL, 19, 0));
    int fds[2];
    REFUSED(pipe(fds));
    int fd = open(victim, O_RDONLY);
    EXPECT(fd >= 0);
    struct flock lock = {.l_type = F_RDLCK};
    REFUSED(fcntl(fd, F_SETLK, &lock));
    REFUSED(flock(fd, LOCK_SH));
    REFUSED(fcntl(fd, F_SETLEASE, F_RDLCK));
    REFUSED(fcntl(fd, F_SETOWN, getpid()));
    REFUSED(fchmod(fd, 0777));
    REFUSED(fsync(fd));
    REFUSED(syscall(SYS_copy_file_range, fd, NULL, fd, NULL, 1, 0));
}

/* True if the descriptor is open on the null device. */
static bool leads_nowhere(int fd) {
    struct stat facts;
    return fstat(fd, &facts) == 0 && S_ISCHR(facts.st_mode) && facts.st_rdev == makedev(1, 3);
}

static void *runs(void *argument) {
    return argument;
}

static void uses(int argc, char **argv) {
    (void)argc, (void)argv;
    const char *victim = path_of("victim");
    EXPECT(leads_nowhere(STDIN_FILENO) && leads_nowhere(STDOUT_FILENO) && leads_nowhere(STDERR_FILENO));
    struct stat facts;
    EXPECT(stat(victim, &facts) == 0 && access(victim, R_OK) == 0);
    int fd = open(victim, O_RDONLY);
    char byte;
    EXPECT(fd >= 0 && fstat(fd, &facts) == 0 && pread(fd, &byte, 1, 0) == 1);
    EXPECT(dup(fd) >= 0 && close(fd) == 0);
    char where[512];
    EXPECT(getcwd(where, sizeof where) != NULL && chdir("/") == 0);
    void *large = malloc(32 << 20);
    EXPECT(large != NULL && mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED);
    pthread_t thread;
    void *result;
    EXPECT(pthread_create(&thread, NULL, runs, large) == 0);
    EXPECT(pthread_join(thread, &result) == 0 && result == large);
    free(large);
    struct timespec time = {0, 1000};
    EXPECT(nanosleep(&time, NULL) == 0 && clock_gettime(CLOCK_REALTIME, &time) == 0);
    EXPECT(stand(0, SCHED_NORMAL, 11, 0) == 0);
    EXPECT(getpid() > 0 && getuid() == geteuid() && sysconf(_SC_NPROCESSORS_ONLN) > 0);
}

/* FIFOs and devices are not opened, which their other end would notice. */
static void opens(int argc, char **argv) {
    (void)argc, (void)argv;
    int fifo = prefetch_open(path_of("fifo"), O_RDONLY);
    EXPECT(fifo >= 0 && prefetch_read(fifo, 10) == 10);
    int device = prefetch_open("/dev/zero", O_RDONLY);
    EXPECT(device >= 0 && prefetch_read(device, 10) == 10);
    char target[64];
    snprintf(target, sizeof target, "/proc/self/fd/%d", device);
    char name[64];
    ssize_t length = readlink(target, name, sizeof name);
    EXPECT(length == 9 && memcmp(name, "/dev/null", 9) == 0);
    /* Its data is not available: the thread ends. */
    char byte;
    fetch_read(device, &byte, 1);
    abort();
}

static int program(int argc, char **argv) {
    (void)argc, (void)argv;
    sleep_ms(150);
    printf("unharmed");
    return 0;
}

static struct outcome finishes(const char *scenario) {
    CHECK(strlen(make_file("victim", 1)) > 0);
    struct outcome outcome = run(scenario, NULL);
    CHECK(WIFEXITED(outcome.status) && WEXITSTATUS(outcome.status) == 0);
    CHECK(strcmp(outcome.out, "unharmed") == 0);
    return outcome;
}

static void test_harms(void) {
    CHECK(mkdir(path_of("folder"), 0777) == 0);
    struct outcome outcome = finishes("harms");
    if (strcmp(reported_text(&outcome, "ended"), "finished") != 0)
        FAIL("%s", outcome.report);
    struct stat facts;
    CHECK(stat(path_of("victim"), &facts) == 0 && facts.st_size == 4096 && facts.st_nlink == 1);
    CHECK(stat(path_of("folder"), &facts) == 0);
    CHECK(stat(path_of("other"), &facts) != 0);
}

static void test_uses(void) {
    /* The program has no standard descriptors except its output. */
    close(STDIN_FILENO);
    close(STDERR_FILENO);
    struct outcome outcome = finishes("uses");
    if (strcmp(reported_text(&outcome, "ended"), "finished") != 0)
        FAIL("%s", outcome.report);
}

static void test_opens(void) {
    CHECK(mkfifo(path_of("fifo"), 0666) == 0);
    struct outcome outcome = finishes("opens");
    CHECK(strcmp(reported_text(&outcome, "ended"), "needs data of what is no regular file") == 0);
    /* Opening it for writing without waiting fails, because nobody reads it. */
    CHECK(open(path_of("fifo"), O_WRONLY | O_NONBLOCK) == -1 && errno == ENXIO);
}

int main(int argc, char **argv) {
    const struct scenario scenarios[] = {
        {"harms", harms, program},
        {"uses", uses, program},
        {"opens", opens, program},
        {0},
    };
    const struct test tests[] = {
        {"what others could see is refused", test_harms},
        {"reading, memory, time and threads are allowed, and the standard descriptors lead nowhere", test_uses},
        {"pipes and devices are not opened", test_opens},
        {0},
    };
    return check_main(argc, argv, scenarios, tests);
}
