/* unseen.c - the program cannot see that there is a prefetch process. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

static volatile int global = 1;
static volatile sig_atomic_t children;
static int *volatile heap;
static volatile char *shared_by_others;

/* Reads forever, at the pace of the program. */
static void reads(int argc, char **argv) {
    (void)argc, (void)argv;
    int fd = prefetch_open(path_of("data"), O_RDONLY);
    for (;;) {
        prefetch_pread(fd, 4096, 0);
        prefetch_pread(fd, 4096, 4096);
    }
}

static void ends(int argc, char **argv) {
    (void)argc, (void)argv;
}

static void scribbles(int argc, char **argv) {
    (void)argc, (void)argv;
    global = 2;
    *heap = 2;
    shared_by_others[0] = 2;
}

static void on_child(int number) {
    (void)number;
    children++;
}

static int waits(int argc, char **argv) {
    (void)argc, (void)argv;
    signal(SIGCHLD, on_child);
    sleep_ms(100);
    CHECK(wait(NULL) == -1 && errno == ECHILD);
    CHECK(waitpid(-1, NULL, WNOHANG | __WALL) == -1 && errno == ECHILD);
    CHECK(children == 0);
    /* The program's own child is its only one. */
    pid_t pid = fork();
    if (pid == 0)
        _exit(7);
    int status;
    CHECK(wait(&status) == pid && WEXITSTATUS(status) == 7);
    CHECK(wait(NULL) == -1 && errno == ECHILD && children == 1);
    return 0;
}

/* A subreaper gets orphans as children, but not the prefetch process. */
static int adopts(int argc, char **argv) {
    (void)argc, (void)argv;
    signal(SIGCHLD, on_child);
    sleep_ms(100);
    CHECK(wait(NULL) == -1 && errno == ECHILD && children == 0);
    return 0;
}

/* The open descriptors below 64, as a set. */
static uint64_t open_now(void) {
    uint64_t open = 0;
    for (int fd = 0; fd < 64; fd++)
        open |= (uint64_t)(fcntl(fd, F_GETFD) >= 0) << fd;
    return open;
}

/* The open descriptors at the beginning of main. */
static uint64_t open_before;

static int looks(int argc, char **argv) {
    (void)argc, (void)argv;
    CHECK(open_now() == open_before);
    sleep_ms(50);
    CHECK(open_now() == open_before);
    struct stat threads;
    CHECK(stat("/proc/self/task", &threads) == 0 && threads.st_nlink == 3);
    sigset_t blocked;
    CHECK(sigprocmask(SIG_SETMASK, NULL, &blocked) == 0);
    for (int n = 1; n < 32; n++)
        CHECK(!sigismember(&blocked, n));
    return 0;
}

static int keeps_memory(int argc, char **argv) {
    (void)argc, (void)argv;
    sleep_ms(100);
    CHECK(global == 1 && *heap == 1 && shared_by_others[0] == 1);
    return 0;
}

/* The test holds the pipe's other end, which ends when the program ends. */
static int writes(int argc, char **argv) {
    (void)argc, (void)argv;
    printf("done");
    return 0;
}

static int forks(int argc, char **argv) {
    (void)argc, (void)argv;
    foreread_call();
    pid_t pid = fork();
    if (pid == 0) {
        for (int n = 0; n < 1000; n++)
            foreread_call();
        foreread_synchronize(1, FOREREAD_SIGNAL);
        foreread_send(1, "x", 1);
        exit(5);
    }
    int status;
    CHECK(waitpid(pid, &status, 0) == pid && WEXITSTATUS(status) == 5);
    foreread_call();
    CHECK(comes_true(has_prefetch_process, NULL));
    return 0;
}

static int executes(int argc, char **argv) {
    (void)argc, (void)argv;
    sleep_ms(50);
    signal(SIGCHLD, SIG_DFL);
    execl("/proc/self/exe", "scenario", "executed", (char *)NULL);
    return 1;
}

static bool is_gone(const void *unused) {
    (void)unused;
    return !has_prefetch_process(NULL);
}

static int executed(int argc, char **argv) {
    (void)argc, (void)argv;
    signal(SIGCHLD, on_child);
    CHECK(comes_true(is_gone, NULL));
    CHECK(wait(NULL) == -1 && errno == ECHILD && children == 0);
    printf("executed");
    return 0;
}

static int is_killed(int argc, char **argv) {
    (void)argc, (void)argv;
    sleep_ms(50);
    CHECK(comes_true(has_prefetch_process, NULL));
    kill(getpid(), SIGKILL);
    return 0;
}

static int ends_at_once(int argc, char **argv) {
    (void)argc, (void)argv;
    return 0;
}

static int keeps_errno(int argc, char **argv) {
    (void)argc, (void)argv;
    for (int n = 0; n < 3000; n++) {
        errno = 77;
        foreread_call();
        CHECK(errno == 77);
        foreread_send(1, path_of("x"), 100);
        CHECK(errno == 77);
        foreread_send_fd(1, 999);
        CHECK(errno == 77);
        foreread_synchronize(n, FOREREAD_SIGNAL);
        CHECK(errno == 77);
    }
    return 0;
}

static struct outcome succeeds(const char *scenario) {
    make_file("data", 4);
    struct outcome outcome = run(scenario, NULL);
    CHECK(WIFEXITED(outcome.status) && WEXITSTATUS(outcome.status) == 0);
    CHECK(outcome.report[0] != '\0');
    return outcome;
}

static void test_wait(void) {
    succeeds("waits");
    succeeds("waits_for_dead");
}

/* Runs a scenario without a report. */
static void succeeds_unreported(const char *scenario, bool subreaper) {
    pid_t pid = fork();
    if (pid == 0) {
        setenv("CHECK_FOLDER", path_of("."), 1);
        /* Kept across exec: the scenario is a subreaper from its beginning. */
        CHECK(prctl(PR_SET_CHILD_SUBREAPER, subreaper) == 0);
        execl("/proc/self/exe", "scenario", scenario, (char *)NULL);
        _exit(127);
    }
    int status;
    CHECK(waitpid(pid, &status, 0) == pid && status == 0);
}

static void test_subreaper(void) {
    make_file("data", 4);
    succeeds_unreported("adopts", true);
}

/* Some of them end while their prefetch processes are being prepared. */
static void test_short(void) {
    make_file("data", 4);
    for (int n = 0; n < 50; n++)
        succeeds_unreported("ends_at_once", false);
    CHECK(comes_true(is_gone, NULL));
}

static void test_looks(void) {
    succeeds("looks");
}

static void test_memory(void) {
    struct outcome outcome = succeeds("keeps_memory");
    CHECK(strcmp(reported_text(&outcome, "ended"), "finished") == 0);
}

static void test_pipe(void) {
    struct outcome outcome = succeeds("writes");
    CHECK(strcmp(outcome.out, "done") == 0);
    CHECK(outcome.seconds < HANGS);
}

static void test_fork(void) {
    struct outcome outcome = succeeds("forks");
    CHECK(reported(&outcome, "program_calls") == 2);
}

static void test_exec(void) {
    struct outcome outcome = succeeds("executes");
    CHECK(strcmp(outcome.out, "executed") == 0);
}

static void test_kill(void) {
    make_file("data", 4);
    struct outcome outcome = run("is_killed", NULL);
    CHECK(WIFSIGNALED(outcome.status) && WTERMSIG(outcome.status) == SIGKILL);
    CHECK(comes_true(is_gone, NULL));
}

static void test_errno(void) {
    succeeds("keeps_errno");
}

int main(int argc, char **argv) {
    open_before = open_now();
    heap = malloc(sizeof *heap);
    *heap = 1;
    shared_by_others = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    shared_by_others[0] = 1;
    const struct scenario scenarios[] = {
        {"waits", reads, waits},
        {"waits_for_dead", ends, waits},
        {"adopts", reads, adopts},
        {"looks", reads, looks},
        {"keeps_memory", scribbles, keeps_memory},
        {"writes", reads, writes},
        {"forks", reads, forks},
        {"executes", reads, executes},
        {"executed", NULL, executed},
        {"is_killed", reads, is_killed},
        {"ends_at_once", reads, ends_at_once},
        {"keeps_errno", reads, keeps_errno},
        {0},
    };
    const struct test tests[] = {
        {"wait() finds no child, and no SIGCHLD comes", test_wait},
        {"nor in a process that adopts orphans", test_subreaper},
        {"descriptors, threads and signal mask are as without", test_looks},
        {"what a slice writes stays its own, also in shared memory", test_memory},
        {"a pipe ends with the program", test_pipe},
        {"a forked child does not count, and the parent goes on", test_fork},
        {"exec ends the prefetch process, unseen by what is executed", test_exec},
        {"SIGKILL ends both", test_kill},
        {"programs that end at once leave none behind", test_short},
        {"errno is kept by every call", test_errno},
        {0},
    };
    return check_main(argc, argv, scenarios, tests);
}
