/* held.c - files that the program has closed, locked or left are as they would be without a prefetch process. */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <sched.h>
#include <sys/auxv.h>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

#define SKIPPED 77

/* ---- files that the slice has open, or has had ---- */

static const char *data(void) {
    const char *mounted = getenv("CHECK_DATA");
    return mounted != NULL ? mounted : path_of("data");
}

static void announce(int fd) {
    for (int n = 0; n < 50; n++)
        prefetch_pread(fd, 4096, n * 7919 % 64 * 4096);
}

/* Keeps the file open as long as the program lives. */
static void stays(int argc, char **argv) {
    (void)argc, (void)argv;
    announce(prefetch_open(data(), O_RDONLY));
    foreread_synchronize(1, FOREREAD_WAIT);
}

/* Closes neither the file nor its mapping, and ends. */
static void forgets(int argc, char **argv) {
    (void)argc, (void)argv;
    int fd = prefetch_open(data(), O_RDONLY);
    announce(fd);
    void *mapped = prefetch_mmap(NULL, 64 * 4096, PROT_READ, MAP_SHARED, fd, 0);
    EXPECT(mapped != MAP_FAILED);
}

static void reads(void) {
    char page[4096];
    int fd = open(data(), O_RDONLY);
    CHECK(fd >= 0);
    for (int n = 0; n < 50; n++)
        CHECK(FOREREAD_COUNTED(pread(fd, page, sizeof page, n * 7919 % 64 * 4096)) == sizeof page);
    CHECK(close(fd) == 0);
}

static int leases(int argc, char **argv) {
    (void)argc, (void)argv;
    slicing_process();
    reads();
    int fd = open(data(), O_RDONLY);
    if (fcntl(fd, F_SETLEASE, F_WRLCK) != 0) {
        printf("%s", strerror(errno));
        return 1;
    }
    return fcntl(fd, F_SETLEASE, F_UNLCK) == 0 ? 9 : 2;
}

static const char *mount_point(void) {
    return path_of("mount");
}

static int unmounts(int argc, char **argv) {
    (void)argc, (void)argv;
    slicing_process();
    reads();
    CHECK(chdir("/") == 0);
    if (umount(mount_point()) == 0)
        return 9;
    printf("%s", strerror(errno));
    return 1;
}

static int has_it_unmounted(int argc, char **argv) {
    (void)argc, (void)argv;
    slicing_process();
    reads();
    CHECK(chdir("/") == 0);
    char command[600];
    snprintf(command, sizeof command, "umount %s", mount_point());
    return system(command) == 0 ? 9 : 1;
}

/* By a call that the runtime does not replace. */
static bool is_unmounted(const void *path) {
    long answer;
#ifdef __x86_64__
    register long flags __asm__("rsi") = 0;
    __asm__ volatile("syscall" : "=a"(answer) : "0"(SYS_umount2), "D"(path), "r"(flags) : "rcx", "r11", "memory");
#else
    answer = -1;
#endif
    return answer == 0;
}

static bool is_gone(const void *unused) {
    return !has_prefetch_process(unused);
}

/* The slice is over, and its announced reads are made: nothing is held, and no process is left to hold it. */
static int waits_for_nothing(int argc, char **argv) {
    (void)argc, (void)argv;
#ifndef __x86_64__
    return SKIPPED;
#endif
    bool reports = getenv("CHECK_UNREPORTED") == NULL;
    reads();
    CHECK(chdir("/") == 0);
    if (!comes_true(is_unmounted, mount_point()))
        return 1;
    CHECK(reports || comes_true(is_gone, NULL));
    return 9;
}

/* Makes a mount name space with its own file system. */
static void make_mount(void) {
    CHECK(mkdir(mount_point(), 0700) == 0 || errno == EEXIST);
    if (unshare(CLONE_NEWNS) != 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
        mount("none", mount_point(), "tmpfs", 0, NULL) != 0) {
        printf("  no file system can be mounted: %s\n", strerror(errno));
        exit(SKIPPED);
    }
    setenv("CHECK_DATA", make_file("mount/data", 64), 1);
}

static void must_pass(const char *scenario) {
    struct outcome outcome = run(scenario, NULL);
    if (WIFEXITED(outcome.status) && WEXITSTATUS(outcome.status) == SKIPPED)
        exit(SKIPPED);
    if (!WIFEXITED(outcome.status) || WEXITSTATUS(outcome.status) != 9)
        FAIL("%s: %d %s %s", scenario, outcome.status, outcome.out, outcome.report);
}

static void test_lease(void) {
    setenv("FOREREAD_PREEXEC", "1", 1);
    const char *file = make_file("data", 64);
    int fd = open(file, O_RDONLY);
    if (fcntl(fd, F_SETLEASE, F_WRLCK) != 0) {
        printf("  no lease to be had here: %s\n", strerror(errno));
        exit(SKIPPED);
    }
    close(fd);
    must_pass("leases");
}

static void test_unmount(void) {
    setenv("FOREREAD_PREEXEC", "1", 1);
    make_mount();
    /* The prefetch process has the program's working directory. */
    setenv("CHECK_PLACE", mount_point(), 1);
    must_pass("unmounts");
}

static void test_unmount_by_child(void) {
    setenv("FOREREAD_PREEXEC", "1", 1);
    make_mount();
    must_pass("has_it_unmounted");
}

static void test_over(void) {
    setenv("FOREREAD_PREEXEC", "1", 1);
    make_mount();
    setenv("CHECK_PLACE", mount_point(), 1);
    must_pass("waits_for_nothing");
}

static void test_over_and_gone(void) {
    setenv("CHECK_UNREPORTED", "1", 1);
    test_over();
}

/* ---- the program's own file ---- */

static int is_over(int argc, char **argv) {
    (void)argc, (void)argv;
    slicing_process();
    return 9;
}

static int is_over_at_once(int argc, char **argv) {
    (void)argc, (void)argv;
    slicing_process();
    _exit(9);
}

static void copy_of_this(const char *to) {
    char command[700];
    snprintf(command, sizeof command, "cp /proc/%d/exe %s", (int)getpid(), to);
    CHECK(system(command) == 0);
}

/* Runs a copy of this file and then opens the copy for writing, 20 times. Returns how often that failed. */
static int busy(const char *scenario) {
    char program[512];
    int failed = 0;
    snprintf(program, sizeof program, "%s", path_of("program"));
    copy_of_this(program);
    for (int n = 0; n < 20; n++) {
        int status;
        pid_t pid = fork();
        CHECK(pid >= 0);
        if (pid == 0) {
            char folder[512];
            snprintf(folder, sizeof folder, "%s", path_of(""));
            setenv("CHECK_FOLDER", folder, 1);
            /* Root's processes end before others get the processor. */
            (void)!nice(-10);
            execl(program, program, scenario, (char *)NULL);
            _exit(127);
        }
        CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 9);
        int fd = open(program, O_WRONLY);
        CHECK(fd >= 0 || errno == ETXTBSY);
        failed += fd < 0;
        if (fd >= 0)
            close(fd);
        CHECK(comes_true(is_gone, NULL));
    }
    return failed;
}

/* On a busy machine a process may take longer to end than the program waits for it, but not all the time. */
static bool is_mostly_free(const char *scenario) {
    for (int tries = 0; tries < 5; tries++)
        if (busy(scenario) <= 5)
            return true;
    return false;
}

static void test_rewritten(void) {
    setenv("FOREREAD_PREEXEC", "1", 1);
    make_file("data", 64);
    CHECK(is_mostly_free("is_over"));
    CHECK(is_mostly_free("is_over_at_once"));
}

/* ---- locks ---- */

/* True if another process finds the file locked. */
static bool is_locked(const char *path) {
    int status;
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        struct flock lock = {.l_type = F_WRLCK};
        int fd = open(path, O_RDWR);
        _exit(fd < 0 || fcntl(fd, F_GETLK, &lock) != 0 ? 2 : lock.l_type != F_UNLCK);
    }
    CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) != 2);
    return WEXITSTATUS(status) == 1;
}

static void nothing(int argc, char **argv) {
    (void)argc, (void)argv;
}

/* Has a lock, held across exec, on the file in its arguments. */
static int was_given_a_lock(int argc, char **argv) {
    CHECK(is_locked(argv[2]));
    int lowest = dup(STDOUT_FILENO);
    close(lowest);
    bool may = foreread_may_wait(argc, argv, "");
    CHECK(is_locked(argv[2]));
    if (may)
        foreread_create_prefetch_thread(nothing, argc, argv);
    CHECK(is_locked(argv[2]));
    /* No descriptor number is in use. */
    CHECK(dup(STDOUT_FILENO) == lowest);
    return 9;
}

/* Locks the file in the middle of its run, and makes all calls of the runtime that use descriptors. */
static int locks(int argc, char **argv) {
    (void)argc, (void)argv;
    slicing_process();
    int fd = open(data(), O_RDWR);
    struct flock lock = {.l_type = F_WRLCK};
    CHECK(fcntl(fd, F_SETLK, &lock) == 0);
    char page[4096];
    for (int n = 0; n < 50; n++)
        CHECK(FOREREAD_COUNTED(pread(fd, page, sizeof page, n * 7919 % 64 * 4096)) == sizeof page);
    foreread_send_fd(1, fd);
    CHECK(is_locked(data()));
    /* Ends the prefetch process. */
    CHECK(umount("/nowhere/at/all") != 0);
    CHECK(is_locked(data()));
    return 9;
}

/* In a process that executes a program while it holds the lock. */
static void test_lock_by_exec(void) {
    const char *file = make_file("locked", 64);
    make_file("sign", 1);
    for (int n = 0; n < 2; n++) {
        int status;
        pid_t pid = fork();
        CHECK(pid >= 0);
        if (pid == 0) {
            int fd = open(file, O_RDWR);
            struct flock lock = {.l_type = F_WRLCK};
            CHECK(fd >= 0 && fcntl(fd, F_SETLK, &lock) == 0);
            setenv("CHECK_FOLDER", path_of(""), 1);
            /* The report that no prefetch process is needed opens a file, too. */
            if (n == 1)
                setenv("FOREREAD_PREEXEC_REPORT", path_of("report"), 1);
            execl("/proc/self/exe", "scenario", "was_given_a_lock", file, (char *)NULL);
            _exit(127);
        }
        CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 9);
    }
}

static void test_lock(void) {
    setenv("FOREREAD_PREEXEC", "1", 1);
    make_file("data", 64);
    must_pass("locks");
}

/* ---- the file of the environment variable ---- */

static void test_report(void) {
    const char *file = make_file("small", 1), *report = path_of("hostile");
    char other[512];
    snprintf(other, sizeof other, "%s", make_file("other", 1));
    for (int n = 0; n < 3; n++) {
        int status;
        unlink(report);
        CHECK(n != 0 || symlink(other, report) == 0);
        CHECK(n != 1 || mkfifo(report, 0600) == 0);
        umask(0);
        pid_t pid = fork();
        if (pid == 0) {
            setenv("CHECK_FOLDER", path_of(""), 1);
            setenv("FOREREAD_PREEXEC_REPORT", report, 1);
            execl("/proc/self/exe", "scenario", "looks", file, (char *)NULL);
            _exit(127);
        }
        CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 9);
        struct stat facts;
        CHECK(stat(other, &facts) == 0 && facts.st_size == 4096);
        if (n == 2)
            CHECK(comes_true(is_written, report) && stat(report, &facts) == 0 && (facts.st_mode & 0777) == 0600);
    }
}

static int looks(int argc, char **argv) {
    if (foreread_may_wait(argc, argv, ""))
        foreread_create_prefetch_thread(nothing, argc, argv);
    return 9;
}

/* A set-user-ID program has no prefetch process, opens no file for it, and ignores its environment. */
static void test_secure(void) {
    struct stat facts;
    char program[512], file[512], report[512];
    snprintf(program, sizeof program, "%s", path_of("secure"));
    snprintf(file, sizeof file, "%s", make_file("small", 1));
    snprintf(report, sizeof report, "%s", path_of("reported"));
    copy_of_this(program);
    int watch = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    CHECK(watch >= 0 && inotify_add_watch(watch, file, IN_OPEN) >= 0);
    CHECK(chmod(path_of("."), 0711) == 0 && chmod(program, 04755) == 0);
    struct statvfs on;
    if (geteuid() != 0 || statvfs(program, &on) != 0 || (on.f_flag & ST_NOSUID) != 0) {
        printf("  no set-user-ID program can be had here\n");
        exit(SKIPPED);
    }
    int status;
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        setenv("CHECK_FOLDER", path_of(""), 1);
        setenv("FOREREAD_PREEXEC_REPORT", report, 1);
        if (setgroups(0, NULL) != 0 || setgid(65534) != 0 || setuid(65534) != 0)
            _exit(1);
        execl(program, program, "is_secure", file, (char *)NULL);
        _exit(127);
    }
    CHECK(waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 9);
    char events[4096];
    CHECK(read(watch, events, sizeof events) < 0);
    CHECK(stat(report, &facts) != 0);
}

static int is_secure(int argc, char **argv) {
    CHECK(getauxval(AT_SECURE) != 0 && geteuid() == 0);
    return looks(argc, argv);
}

int main(int argc, char **argv) {
    const struct scenario scenarios[] = {
        {"leases", stays, leases},
        {"unmounts", stays, unmounts},
        {"has_it_unmounted", stays, has_it_unmounted},
        {"waits_for_nothing", forgets, waits_for_nothing},
        {"is_over", stays, is_over},
        {"is_over_at_once", stays, is_over_at_once},
        {"was_given_a_lock", NULL, was_given_a_lock},
        {"locks", stays, locks},
        {"looks", NULL, looks},
        {"is_secure", NULL, is_secure},
        {0},
    };
    const struct test tests[] = {
        {"a file that the program has closed can be leased", test_lease},
        {"what it has read can be unmounted, where it has been, too", test_unmount},
        {"also by a command", test_unmount_by_child},
        {"when the slice is over it holds nothing", test_over},
        {"and when that is read it is gone", test_over_and_gone},
        {"when the program has ended its file can be written", test_rewritten},
        {"a lock that came by exec stays", test_lock_by_exec},
        {"a lock of its own stays", test_lock},
        {"a report goes to a file of one's own", test_report},
        {"a set-user-ID program looks at nothing, and reports nowhere", test_secure},
        {0},
    };
    return check_main(argc, argv, scenarios, tests);
}
