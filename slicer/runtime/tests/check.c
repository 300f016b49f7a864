/* check.c - runs scenarios and observes them; creates files to read. */
#include "check.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PAGE 4096
/* Exit status of a test that cannot be run here. */
#define SKIPPED 77

static char folder[256];

double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

void sleep_ms(unsigned milliseconds) {
    struct timespec time = {milliseconds / 1000, milliseconds % 1000 * 1000000L};
    while (nanosleep(&time, &time) != 0)
        ;
}

static bool comes_true_in(double seconds, bool (*condition)(const void *), const void *argument) {
    double end = now() + seconds;
    while (!condition(argument)) {
        if (now() > end)
            return false;
        sleep_ms(2);
    }
    return true;
}

bool comes_true(bool (*condition)(const void *), const void *argument) {
    return comes_true_in(20, condition, argument);
}

const char *path_of(const char *name) {
    static _Thread_local char paths[16][512];
    static _Thread_local unsigned next;
    char *path = paths[next++ % 16];
    snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

const char *make_file(const char *name, size_t pages) {
    const char *path = path_of(name);
    FILE *file = fopen(path, "w");
    CHECK(file != NULL);
    for (size_t n = 0; n < pages; n++) {
        char page[PAGE] = {0};
        snprintf(page, sizeof page, "%zu\n", n);
        CHECK(fwrite(page, sizeof page, 1, file) == 1);
    }
    CHECK(fclose(file) == 0);
    return path;
}

size_t resident(const char *path) {
    int fd = open(path, O_RDONLY);
    struct stat facts;
    CHECK(fd >= 0 && fstat(fd, &facts) == 0);
    size_t pages = ((size_t)facts.st_size + PAGE - 1) / PAGE, there = 0;
    void *mapped = mmap(NULL, (size_t)facts.st_size, PROT_READ, MAP_SHARED, fd, 0);
    unsigned char *in = malloc(pages);
    CHECK(mapped != MAP_FAILED && in != NULL && mincore(mapped, (size_t)facts.st_size, in) == 0);
    for (size_t n = 0; n < pages; n++)
        there += in[n] & 1;
    free(in);
    munmap(mapped, (size_t)facts.st_size);
    close(fd);
    return there;
}

bool make_cold(const char *path) {
    int fd = open(path, O_RDONLY);
    CHECK(fd >= 0 && fsync(fd) == 0);
    posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
    close(fd);
    return resident(path) == 0;
}

void leave_sign_at(const char *path) {
    char byte;
    int fd = prefetch_open(path, O_RDONLY);
    (void)FOREREAD_UNCOUNTED(fetch_pread(fd, &byte, 1, 0));
    prefetch_close(fd);
}

void leave_sign(void) {
    leave_sign_at(path_of("sign"));
}

/* Reads a descriptor to its end. */
static void read_all(int fd, char *text, size_t bytes) {
    size_t have = 0;
    ssize_t got;
    while (have < bytes - 1 && (got = read(fd, text + have, bytes - 1 - have)) != 0)
        if (got > 0)
            have += (size_t)got;
        else
            CHECK(errno == EINTR);
    text[have] = '\0';
}

bool is_written(const void *path) {
    struct stat facts;
    return stat(path, &facts) == 0 && facts.st_size > 0;
}

struct outcome run(const char *scenario, const char *argument) {
    struct outcome outcome = {0};
    const char *report = path_of("report");
    unlink(report);
    make_cold(make_file("sign", 1));
    int pipes[2];
    CHECK(pipe2(pipes, O_CLOEXEC) == 0);
    double began = now();
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        /* With a report, a process lives until it has written it. */
        if (getenv("CHECK_UNREPORTED") == NULL)
            setenv("FOREREAD_PREEXEC_REPORT", report, 1);
        setenv("CHECK_FOLDER", folder, 1);
        dup2(pipes[1], STDOUT_FILENO);
        execl("/proc/self/exe", "scenario", scenario, argument, (char *)NULL);
        _exit(127);
    }
    close(pipes[1]);
    read_all(pipes[0], outcome.out, sizeof outcome.out);
    double ended = now();
    close(pipes[0]);
    CHECK(waitpid(pid, &outcome.status, 0) == pid);
    outcome.seconds = ended - began;
    if (getenv("CHECK_UNREPORTED") == NULL && comes_true_in(2, is_written, report)) {
        int fd = open(report, O_RDONLY);
        CHECK(fd >= 0);
        read_all(fd, outcome.report, sizeof outcome.report);
        close(fd);
    }
    return outcome;
}

static const char *value_of(const struct outcome *outcome, const char *name) {
    char key[64];
    snprintf(key, sizeof key, "\"%s\": ", name);
    const char *found = strstr(outcome->report, key);
    return found != NULL ? found + strlen(key) : NULL;
}

double reported(const struct outcome *outcome, const char *name) {
    const char *value = value_of(outcome, name);
    return value != NULL ? strtod(value, NULL) : -1;
}

const char *reported_text(const struct outcome *outcome, const char *name) {
    static char text[128];
    const char *value = value_of(outcome, name);
    if (value == NULL || sscanf(value, "\"%127[^\"]\"", text) != 1)
        return "";
    return text;
}

bool is_closed(const struct outcome *outcome) {
    const char *columns[] = {"useful", "late", "wasted", "evicted", "infill"};
    double sum = 0;
    for (size_t n = 0; n < sizeof columns / sizeof columns[0]; n++)
        sum += reported(outcome, columns[n]);
    return sum == reported(outcome, "issued");
}

/* Reads a file of /proc/PID; returns its number of bytes. */
static size_t read_proc(const char *pid, const char *name, char *text, size_t bytes) {
    char path[700];
    snprintf(path, sizeof path, "/proc/%s/%s", pid, name);
    memset(text, 0, bytes);
    int fd = open(path, O_RDONLY);
    if (fd < 0)
        return 0;
    ssize_t got = read(fd, text, bytes - 1);
    close(fd);
    return got > 0 ? (size_t)got : 0;
}

/* True if a thread of a process has this name. */
static bool has_thread(const char *pid, const char *wanted) {
    char path[600], name[32];
    snprintf(path, sizeof path, "/proc/%s/task", pid);
    DIR *threads = opendir(path);
    bool found = false;
    struct dirent *entry;
    while (threads != NULL && !found && (entry = readdir(threads)) != NULL) {
        snprintf(path, sizeof path, "task/%s/comm", entry->d_name);
        read_proc(pid, path, name, sizeof name);
        found = strcmp(name, wanted) == 0;
    }
    if (threads != NULL)
        closedir(threads);
    return found;
}

/* A prefetch process of this run, with a thread of the given name if there is one; 0 if none is alive. */
static pid_t find(const char *thread) {
    pid_t found = 0;
    DIR *processes = opendir("/proc");
    CHECK(processes != NULL);
    struct dirent *entry;
    while ((entry = readdir(processes)) != NULL) {
        char name[32], state[512];
        static char environment[1 << 17];
        read_proc(entry->d_name, "comm", name, sizeof name);
        if (strcmp(name, "foreread-pre\n") != 0)
            continue;
        /* Born by a scenario of this run: its environment is a copy of the scenario's. */
        size_t bytes = read_proc(entry->d_name, "environ", environment, sizeof environment);
        read_proc(entry->d_name, "stat", state, sizeof state);
        bool dead = strstr(state, ") Z") != NULL || strstr(state, ") X") != NULL;
        if (!dead && memmem(environment, bytes, folder, strlen(folder)) != NULL &&
            (thread == NULL || has_thread(entry->d_name, thread)))
            found = (pid_t)strtol(entry->d_name, NULL, 10);
    }
    closedir(processes);
    return found;
}

bool has_prefetch_process(const void *unused) {
    (void)unused;
    return find(NULL) != 0;
}

pid_t slicing_process(void) {
    double end = now() + 20;
    pid_t found;
    while ((found = find("prefetch\n")) == 0) {
        CHECK(now() < end);
        sleep_ms(2);
    }
    return found;
}

bool is_slice_over(const void *unused) {
    (void)unused;
    /* Another process may drop the page from memory once it was seen. */
    static bool has_begun;
    has_begun = has_begun || resident(path_of("sign")) != 0;
    return has_begun && find("prefetch\n") == 0;
}

void await_slice(void) {
    CHECK(comes_true(is_slice_over, NULL));
}

/* Runs a test in a separate process, which a failure ends. Returns its exit status, 1 if it was killed. */
static int run_test(const struct test *test) {
    pid_t pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        /* A regular file as standard input would be one more file that the prefetch process knows. */
        CHECK(freopen("/dev/null", "r", stdin) != NULL);
        test->run();
        exit(0);
    }
    int status;
    CHECK(waitpid(pid, &status, 0) == pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}

static int run_tests(const struct test *tests) {
    char template[] = "/var/tmp/foreread-preexec-XXXXXX";
    CHECK(mkdtemp(template) != NULL);
    snprintf(folder, sizeof folder, "%s", template);
    int failed = 0;
    for (const struct test *test = tests; test->run != NULL; test++) {
        int status = run_test(test);
        printf("%-8s%s\n", status == 0 ? "ok" : status == SKIPPED ? "skipped" : "FAILED", test->behaviour);
        fflush(stdout);
        failed |= status != 0 && status != SKIPPED;
    }
    char command[300];
    snprintf(command, sizeof command, "rm -r %s", folder);
    CHECK(system(command) == 0);
    return failed;
}

int check_main(int argc, char **argv, const struct scenario *scenarios, const struct test *tests) {
    if (argc < 2)
        return run_tests(tests);
    const char *given = getenv("CHECK_FOLDER");
    snprintf(folder, sizeof folder, "%s", given != NULL ? given : "/nowhere");
    const char *place = getenv("CHECK_PLACE");
    CHECK(place == NULL || chdir(place) == 0);
    for (const struct scenario *scenario = scenarios; scenario->name != NULL; scenario++)
        if (strcmp(scenario->name, argv[1]) == 0) {
            if (scenario->slice != NULL)
                foreread_create_prefetch_thread(scenario->slice, argc, argv);
            return scenario->program(argc, argv);
        }
    FAIL("no scenario %s", argv[1]);
}
