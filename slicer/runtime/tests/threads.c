/* threads.c - one prefetch thread per thread that reads, each with its own call IDs. */
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

#define THREADS 4
#define PAGES 1000
#define PAGE 4096

static void *announces(void *argument) {
    int fd = prefetch_open(path_of(argument), O_RDONLY);
    for (int n = PAGES - 1; n >= 0; n--)
        prefetch_pread(fd, PAGE, (off_t)n * PAGE);
    prefetch_close(fd);
    return NULL;
}

static void *reads(void *argument) {
    int fd = open(path_of(argument), O_RDONLY);
    char page[PAGE];
    for (int n = PAGES - 1; n >= 0; n--) {
        CHECK(pread(fd, page, PAGE, (off_t)n * PAGE) == PAGE);
        foreread_call();
        /* Each thread at its own pace. */
        if (n % 100 == 0)
            sleep_ms(1 + *(char *)argument % 4);
    }
    close(fd);
    return NULL;
}

static char names[THREADS][2] = {"a", "b", "c", "d"};

static void prefetch_main(int argc, char **argv) {
    (void)argc, (void)argv;
    pthread_t threads[THREADS];
    for (int n = 0; n < THREADS; n++)
        EXPECT(prefetch_pthread_create(&threads[n], NULL, announces, names[n]) == 0);
    for (int n = 0; n < THREADS; n++)
        pthread_join(threads[n], NULL);
}

static void *reads_unknown(void *argument) {
    return reads(argument);
}

static int program(int argc, char **argv) {
    (void)argc, (void)argv;
    pthread_t threads[THREADS], other;
    for (int n = 0; n < THREADS; n++)
        CHECK(foreread_pthread_create(&threads[n], NULL, reads, names[n]) == 0);
    /* A thread without a counterpart in the prefetch process does not count. */
    CHECK(pthread_create(&other, NULL, reads_unknown, names[0]) == 0);
    for (int n = 0; n < THREADS; n++)
        CHECK(pthread_join(threads[n], NULL) == 0);
    CHECK(pthread_join(other, NULL) == 0);
    sleep_ms(20);
    return 0;
}

/* A thread begins, like one of std::thread, without room for the stack of its signal handlers. */
static void *begins_without_room(void *path) {
    struct rlimit room;
    EXPECT(getrlimit(RLIMIT_AS, &room) == 0);
    EXPECT(setrlimit(RLIMIT_AS, &(struct rlimit){0, room.rlim_max}) == 0);
    foreread_thread_begin(*(uint64_t *)path);
    abort();
}

static void begin_without_room(int argc, char **argv) {
    (void)argc, (void)argv;
    struct rlimit room;
    uint64_t path = foreread_thread_path();
    pthread_t thread;
    EXPECT(path != 0 && getrlimit(RLIMIT_AS, &room) == 0);
    EXPECT(pthread_create(&thread, NULL, begins_without_room, &path) == 0);
    EXPECT(pthread_join(thread, NULL) == 0 && setrlimit(RLIMIT_AS, &room) == 0);
    leave_sign();
}

static bool is_gone(const void *unused) {
    return !has_prefetch_process(unused);
}

static int awaits_the_end(int argc, char **argv) {
    (void)argc, (void)argv;
    await_slice();
    CHECK(comes_true(is_gone, NULL));
    return 0;
}

static int starts_threads_first(int argc, char **argv) {
    (void)argc, (void)argv;
    sleep_ms(30);
    CHECK(!has_prefetch_process(NULL));
    printf("alone");
    return 0;
}

static void *sleeps(void *argument) {
    for (;;)
        sleep_ms(1000);
    return argument;
}

static void test_threads(void) {
    for (int n = 0; n < THREADS; n++)
        if (!make_cold(make_file(names[n], PAGES)))
            exit(77);
    struct outcome outcome = run("threads", NULL);
    if (outcome.status != 0)
        FAIL("%d %s", outcome.status, outcome.report);
    CHECK(reported(&outcome, "threads") == THREADS + 1);
    CHECK(reported(&outcome, "calls") == THREADS * PAGES);
    CHECK(reported(&outcome, "program_calls") == THREADS * PAGES);
    CHECK(reported(&outcome, "files") == THREADS);
    CHECK(reported(&outcome, "issued") > 0);
}

static void test_before_main(void) {
    struct outcome outcome = run("starts_threads_first", NULL);
    CHECK(outcome.status == 0 && strcmp(outcome.out, "alone") == 0 && outcome.report[0] == '\0');
}

static void test_not_begun(void) {
    setenv("CHECK_UNREPORTED", "1", 1);
    CHECK(run("begin_without_room", NULL).status == 0);
}

int main(int argc, char **argv) {
    pthread_t thread;
    if (argc > 1 && strcmp(argv[1], "starts_threads_first") == 0)
        CHECK(pthread_create(&thread, NULL, sleeps, NULL) == 0);
    const struct scenario scenarios[] = {
        {"threads", prefetch_main, program},
        {"starts_threads_first", prefetch_main, starts_threads_first},
        {"begin_without_room", begin_without_room, awaits_the_end},
        {0},
    };
    const struct test tests[] = {
        {"threads that read are prefetched for one by one", test_threads},
        {"a process that has threads before is left alone", test_before_main},
        {"a thread that could not begin keeps no prefetch process", test_not_begun},
        {0},
    };
    return check_main(argc, argv, scenarios, tests);
}
