/* pace.c - how far the prefetch thread gets ahead of the program, and reads that come too late. */
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

#define PAGE 4096
#define PAGES 5000
#define QUEUE 128

static void announces(int argc, char **argv) {
    (void)argc;
    int fd = prefetch_open(argv[2], O_RDONLY);
    for (int n = PAGES - 1; n >= 0; n--)
        prefetch_pread(fd, PAGE, (off_t)n * PAGE);
    leave_sign();
}

/* Begins when the program has made most of its reads. */
static void is_late(int argc, char **argv) {
    foreread_synchronize(0, FOREREAD_WAIT);
    announces(argc, argv);
}

/* One byte at a time. */
static void in_bytes(int argc, char **argv) {
    (void)argc;
    FILE *file = prefetch_fopen(argv[2], "r");
    for (int n = 0; n < 4 * PAGE; n++)
        prefetch_getc(file);
    leave_sign();
}

/* Two files in turn, each in order. */
static void in_order(int argc, char **argv) {
    (void)argc;
    int fd = prefetch_open(argv[2], O_RDONLY), other = prefetch_open(path_of("other"), O_RDONLY);
    for (int n = 0; n < PAGES; n++) {
        prefetch_pread(fd, PAGE, (off_t)n * PAGE);
        prefetch_pread(other, PAGE, (off_t)n * PAGE);
    }
    leave_sign();
}

/* Needs all data of a file. */
static void reads_itself(int argc, char **argv) {
    (void)argc;
    char page[PAGE];
    foreread_synchronize(0, FOREREAD_WAIT);
    FILE *file = prefetch_fopen(argv[2], "r");
    for (int n = 0; n < PAGES; n++)
        fetch_fread(page, PAGE, 1, file);
    leave_sign();
}

/* First needs all data of a long index. */
static void reads_index_first(int argc, char **argv) {
    (void)argc;
    char page[PAGE];
    foreread_synchronize(0, FOREREAD_WAIT);
    int fd = prefetch_open(argv[2], O_RDONLY), other = prefetch_open(path_of("other"), O_RDONLY);
    for (int n = 0; n < PAGES / 5; n++)
        fetch_pread(fd, page, PAGE, (off_t)n * PAGE);
    for (int n = 0; n < PAGES; n++)
        prefetch_pread(other, PAGE, (off_t)(PAGES - 1 - n) * PAGE);
}

/* Needs all data of a file that decides which reads of another follow. */
static void reads_index(int argc, char **argv) {
    (void)argc;
    char page[PAGE];
    foreread_synchronize(0, FOREREAD_WAIT);
    int fd = prefetch_open(argv[2], O_RDONLY), other = prefetch_open(path_of("other"), O_RDONLY);
    for (int n = 0; n < PAGES; n++) {
        fetch_pread(fd, page, PAGE, (off_t)n * PAGE);
        if (n % 20 == 0)
            prefetch_pread(other, PAGE, (off_t)(PAGES - 1 - n) * PAGE);
    }
    leave_sign();
}

/* Has the program's share of a processor. */
static void has_share(int argc, char **argv) {
    (void)argc, (void)argv;
    EXPECT(getpriority(PRIO_PROCESS, 0) == atoi(getenv("CHECK_NICE")));
    leave_sign();
}

static int reads(const char *path, int count) {
    int fd = open(path, O_RDONLY);
    char page[PAGE];
    for (int n = PAGES - 1; n >= PAGES - count; n--) {
        CHECK(pread(fd, page, PAGE, (off_t)n * PAGE) == PAGE);
        foreread_call();
    }
    return 0;
}

static int reads_on(const char *path, int count) {
    int fd = open(path, O_RDONLY);
    char page[PAGE];
    for (int n = 0; n < count; n++) {
        CHECK(pread(fd, page, PAGE, (off_t)n * PAGE) == PAGE);
        foreread_call();
    }
    return 0;
}

static bool is_issued(const void *path) {
    return resident(path) >= PAGES / 2;
}

/* Ends when half of the announced pages are in memory and few of them have been read. */
static int leaves(int argc, char **argv) {
    (void)argc;
    CHECK(comes_true(is_issued, argv[2]));
    return reads(argv[2], PAGES / 10);
}

static bool is_full(const void *path) {
    return resident(path) == QUEUE;
}

/* At first reads nothing: the prefetch thread goes as far as the queue lets it. Then reads so slowly that a thread
 * can keep up that gets a processor only while the program sleeps. */
static int dawdles(int argc, char **argv) {
    (void)argc;
    CHECK(comes_true(is_full, argv[2]));
    sleep_ms(100);
    CHECK(is_full(argv[2]));
    int fd = open(argv[2], O_RDONLY);
    char page[PAGE];
    for (int n = PAGES - 1; n >= 0; n--) {
        CHECK(pread(fd, page, PAGE, (off_t)n * PAGE) == PAGE);
        foreread_call();
        if (n % (QUEUE / 2) == 0)
            sleep_ms(5);
    }
    await_slice();
    return 0;
}

static int hurries(int argc, char **argv) {
    (void)argc;
    int status = reads(argv[2], PAGES - 1000);
    foreread_synchronize(0, FOREREAD_SIGNAL);
    await_slice();
    return status;
}

static int counts_bytes(int argc, char **argv) {
    (void)argc, (void)argv;
    await_slice();
    foreread_calls(4 * PAGE);
    return 0;
}

/* Needs more time for its calls than the program for its reads. */
static void is_slow(int argc, char **argv) {
    (void)argc;
    leave_sign();
    int fd = prefetch_open(argv[2], O_RDONLY);
    for (;;) {
        prefetch_pread(fd, 1, 0);
        for (volatile int spin = 0; spin < 2000; spin++)
            ;
    }
}

static int hurries_on(int argc, char **argv) {
    (void)argc, (void)argv;
    sleep_ms(30);
    double end = now() + 20;
    while (!is_slice_over(NULL)) {
        CHECK(now() < end);
        foreread_calls(100000);
        sleep_ms(1);
    }
    return 0;
}

/* An endless loop without an entry. */
static void goes_round(int argc, char **argv) {
    (void)argc;
    int fd = prefetch_open(argv[2], O_RDONLY);
    for (;;)
        prefetch_pread(fd, 1, 0);
}

static int goes_slowly(int argc, char **argv) {
    (void)argc, (void)argv;
    foreread_call();
    sleep_ms(300);
    return 0;
}

static int waits(int argc, char **argv) {
    (void)argc;
    await_slice();
    CHECK(resident(argv[2]) == 0);
    return 0;
}

static bool is_whole(const void *path) {
    return resident(path) == PAGES;
}

/* The program's pages stay in memory while the prefetch thread checks them. */
static int looks_on(int argc, char **argv) {
    (void)argc;
    await_slice();
    CHECK(comes_true(is_whole, argv[2]));
    return 0;
}

/* The prefetch thread begins when the program has made a call. */
static int begins(int argc, char **argv) {
    (void)argc, (void)argv;
    foreread_call();
    foreread_synchronize(0, FOREREAD_SIGNAL);
    await_slice();
    return 0;
}

/* Reads the file at the same time as the prefetch thread. */
static int reads_along(int argc, char **argv) {
    (void)argc;
    foreread_synchronize(0, FOREREAD_SIGNAL);
    int status = reads_on(argv[2], PAGES);
    sleep_ms(800);
    return status;
}

static int reads_index_along(int argc, char **argv) {
    (void)argc;
    foreread_synchronize(0, FOREREAD_SIGNAL);
    int status = reads_on(argv[2], PAGES / 5);
    CHECK(comes_true(is_issued, path_of("other")));
    return status;
}

static int begins_later(int argc, char **argv) {
    (void)argc, (void)argv;
    foreread_synchronize(0, FOREREAD_SIGNAL);
    await_slice();
    return 0;
}

/* Drops the first page of a file from memory. */
static void drop_first(const char *path) {
    int fd = open(path, O_RDONLY);
    CHECK(fd >= 0 && fsync(fd) == 0 && posix_fadvise(fd, 0, PAGE, POSIX_FADV_DONTNEED) == 0);
    close(fd);
    if (resident(path) != PAGES - 1)
        exit(77);
}

static struct outcome succeeds(const char *scenario) {
    const char *file = make_file("data", PAGES);
    if (!make_cold(file))
        exit(77);
    struct outcome outcome = run(scenario, file);
    if (outcome.status != 0)
        FAIL("%d %s", outcome.status, outcome.report);
    return outcome;
}

static void test_queue(void) {
    char entries[16];
    snprintf(entries, sizeof entries, "%d", QUEUE);
    setenv("FOREREAD_PREEXEC_QUEUE", entries, 1);
    struct outcome outcome = succeeds("dawdles");
    CHECK(strcmp(reported_text(&outcome, "ended"), "finished") == 0);
    CHECK(reported(&outcome, "calls") == PAGES && reported(&outcome, "program_calls") == PAGES);
    CHECK(reported(&outcome, "entries") + reported(&outcome, "expired") == PAGES);
    CHECK(reported(&outcome, "waited_room_s") >= 0.1);
}

static void test_unread(void) {
    struct outcome outcome = succeeds("leaves");
    CHECK(reported(&outcome, "wasted") > 0);
    if (!is_closed(&outcome))
        FAIL("%s", outcome.report);
}

static void test_resident(void) {
    const char *file = make_file("data", PAGES);
    struct outcome outcome = run("looks_on", file);
    CHECK(outcome.status == 0);
    if (reported(&outcome, "resident") != PAGES || reported(&outcome, "entries") != 0 ||
        strcmp(reported_text(&outcome, "library"), "not needed") != 0)
        FAIL("%s", outcome.report);
}

/* Tries of tests that other processes may disturb. */
enum { TURNS = 3 };

/* All pages are in memory except the first, which is read last. */
static void test_first_cold(void) {
    const char *file = make_file("data", PAGES);
    drop_first(file);
    struct outcome outcome = run("looks_on", file);
    /* Another process may drop all memory meanwhile, but not each time. */
    for (int turn = 0; turn < TURNS && outcome.status != 0; turn++) {
        drop_first(file);
        outcome = run("looks_on", file);
    }
    CHECK(outcome.status == 0);
    if (reported(&outcome, "resident") != PAGES - 1 || reported(&outcome, "issued") != PAGE)
        FAIL("%s", outcome.report);
}

static void test_late(void) {
    struct outcome outcome = succeeds("hurries");
    CHECK(reported(&outcome, "expired") == PAGES - 1000);
    CHECK(reported(&outcome, "entries") == 1000);
    CHECK(reported(&outcome, "issued") <= 1000 * PAGE);
}

static bool was_read(const struct outcome *outcome) {
    return reported(outcome, "useful") + reported(outcome, "late") == reported(outcome, "issued");
}

static void test_bytes(void) {
    struct outcome outcome = succeeds("counts_bytes");
    CHECK(reported(&outcome, "calls") == 4 * PAGE && reported(&outcome, "entries") == 4);
    CHECK(reported(&outcome, "coalesced") == 4 * (PAGE - 1));
    /* A page that is evicted before it is read is neither useful nor late. */
    for (int turn = 0; turn < TURNS && !was_read(&outcome); turn++)
        outcome = succeeds("counts_bytes");
    if (!was_read(&outcome))
        FAIL("%s", outcome.report);
}

static void test_in_order(void) {
    CHECK(strlen(make_file("other", PAGES)) > 0);
    struct outcome outcome = succeeds("waits");
    CHECK(reported(&outcome, "left_to_kernel") == 2 * PAGES && reported(&outcome, "entries") == 0);
}

static void test_with_program(void) {
    struct outcome outcome = succeeds("reads_along");
    /* A prefetch thread that gets no processor meanwhile has nothing left to read. */
    const char *ended = "reads in order with the program";
    for (int turn = 0; turn < TURNS && strcmp(reported_text(&outcome, "ended"), ended) != 0; turn++)
        outcome = succeeds("reads_along");
    if (strcmp(reported_text(&outcome, "ended"), ended) != 0)
        FAIL("%s", outcome.report);
    CHECK(reported(&outcome, "calls") < PAGES);
}

static void test_index(void) {
    CHECK(make_cold(make_file("other", PAGES)));
    struct outcome outcome = succeeds("reads_index_along");
    if (reported(&outcome, "issued") < PAGES / 2 * PAGE)
        FAIL("%s", outcome.report);
}

static void test_ahead(void) {
    CHECK(strlen(make_file("other", PAGES)) > 0);
    const char *scenarios[] = {"begins", "begins_later", "has_index"};
    for (int n = 0; n < 3; n++) {
        struct outcome outcome = succeeds(scenarios[n]);
        CHECK(strcmp(reported_text(&outcome, "ended"), "finished") == 0);
    }
}

static void test_round(void) {
    char entries[16];
    snprintf(entries, sizeof entries, "%d", QUEUE);
    setenv("FOREREAD_PREEXEC_QUEUE", entries, 1);
    struct outcome outcome = succeeds("goes_slowly");
    if (reported(&outcome, "calls") > 1000 * QUEUE)
        FAIL("%s", outcome.report);
}

static void test_hopeless(void) {
    struct outcome outcome = succeeds("hurries_on");
    if (strcmp(reported_text(&outcome, "ended"), "does not keep up") != 0)
        FAIL("%s", outcome.report);
}

static int shares(int argc, char **argv) {
    (void)argc, (void)argv;
    await_slice();
    return 0;
}

static void test_share(void) {
    char nicer[16];
    CHECK(nice(3) != -1);
    snprintf(nicer, sizeof nicer, "%d", getpriority(PRIO_PROCESS, 0));
    setenv("CHECK_NICE", nicer, 1);
    struct outcome outcome = succeeds("shares");
    if (strcmp(reported_text(&outcome, "ended"), "finished") != 0)
        FAIL("%s", outcome.report);
}

static void test_one_processor(void) {
    cpu_set_t all, one;
    CHECK(sched_getaffinity(0, sizeof all, &all) == 0);
    int first = 0;
    while (!CPU_ISSET(first, &all))
        first++;
    CPU_ZERO(&one);
    CPU_SET(first, &one);
    CHECK(sched_setaffinity(0, sizeof one, &one) == 0);
    pid_t busy = fork();
    CHECK(busy != -1);
    if (busy == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (;;)
            ;
    }
    /* Half of the announced pages are in memory before the program reads. */
    struct outcome outcome = succeeds("leaves");
    kill(busy, SIGKILL);
    waitpid(busy, NULL, 0);
    if (reported(&outcome, "issued") < PAGES / 2 * PAGE)
        FAIL("%s", outcome.report);
}

int main(int argc, char **argv) {
    const struct scenario scenarios[] = {
        {"shares", has_share, shares},
        {"dawdles", announces, dawdles},
        {"leaves", announces, leaves},
        {"hurries", is_late, hurries},
        {"hurries_on", is_slow, hurries_on},
        {"goes_slowly", goes_round, goes_slowly},
        {"waits", in_order, waits},
        {"looks_on", announces, looks_on},
        {"begins", reads_itself, begins},
        {"begins_later", reads_itself, begins_later},
        {"reads_along", reads_itself, reads_along},
        {"reads_index_along", reads_index_first, reads_index_along},
        {"has_index", reads_index, begins},
        {"counts_bytes", in_bytes, counts_bytes},
        {0},
    };
    const struct test tests[] = {
        {"a full queue holds the prefetch thread up, and room lets it go on", test_queue},
        {"what the program leaves unread is in the report, whose account is closed", test_unread},
        {"what the program has read is not announced any more", test_late},
        {"a prefetch thread that goes round without end, needing no room, sleeps", test_round},
        {"a prefetch thread that falls behind for good is ended", test_hopeless},
        {"a prefetch thread has the program's share of a processor", test_share},
        {"it comes ahead on the program's only processor, beside a busy one", test_one_processor},
        {"what is read in order is left to the kernel", test_in_order},
        {"what is in memory already needs no library", test_resident},
        {"the first that is not has it loaded", test_first_cold},
        {"a prefetch thread that only reads in order for itself, where the program does, is ended", test_with_program},
        {"not where the program is not yet, or reads no more, nor where it announces something", test_ahead},
        {"it stays for what a long index leads to", test_index},
        {"reads of one page are one entry, whatever their number", test_bytes},
        {0},
    };
    return check_main(argc, argv, scenarios, tests);
}
