/* loads.c - single loads from a mapped file, which have no call IDs. */
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

#define PAGE 4096
#define PAGES 1000
#define RECORDS 100
#define VALUES 100

static const char *map(int fd) {
    const char *mapped = mmap(NULL, PAGES * PAGE, PROT_READ, MAP_PRIVATE, fd, 0);
    CHECK(mapped != MAP_FAILED);
    return mapped;
}

static const char *prefetch_map(const char *path) {
    const char *mapped = prefetch_mmap(NULL, PAGES * PAGE, PROT_READ, MAP_PRIVATE,
                                       prefetch_open(path, O_RDONLY), 0);
    EXPECT(mapped != MAP_FAILED);
    return mapped;
}

/* Records from the last to the first, with pages between them and their values one by one; twice. */
static void announces_records(int argc, char **argv) {
    (void)argc;
    const char *mapped = prefetch_map(argv[2]);
    for (int n = 2 * RECORDS - 1; n >= 0; n--) {
        prefetch_call();
        const char *record = mapped + n % RECORDS * (PAGES / RECORDS) * PAGE;
        prefetch_loads(&record[0], &record[2], 1, VALUES / 2);
        prefetch_load(&record[VALUES], sizeof(int));
    }
}

static bool are_there(const void *path) {
    return resident(path) >= RECORDS;
}

static int looks_at_records(int argc, char **argv) {
    (void)argc;
    CHECK(comes_true(are_there, argv[2]));
    const char *mapped = map(open(argv[2], O_RDONLY));
    for (int n = 2 * RECORDS - 1; n >= 0; n--) {
        foreread_call();
        int page = n % RECORDS * (PAGES / RECORDS);
        CHECK(atoi(mapped + page * PAGE) == page);
    }
    return 0;
}

/* A column with one page per value. */
static void announces_column(int argc, char **argv) {
    (void)argc;
    const char *mapped = prefetch_map(argv[2]);
    prefetch_call();
    prefetch_loads(mapped + (PAGES - 10) * PAGE, mapped + (PAGES - 20) * PAGE, 1, RECORDS - 1);
    prefetch_load(mapped, 1);
}

static int looks_at_column(int argc, char **argv) {
    (void)argc;
    CHECK(comes_true(are_there, argv[2]));
    foreread_call();
    return 0;
}

/* The whole file, from the beginning. */
static void announces_all(int argc, char **argv) {
    (void)argc;
    const char *mapped = prefetch_map(argv[2]);
    prefetch_call();
    prefetch_loads(mapped, mapped + 1, 1, PAGES * PAGE);
}

static int waits(int argc, char **argv) {
    (void)argc;
    sleep_ms(100);
    foreread_call();
    CHECK(resident(argv[2]) == 0);
    return 0;
}

static struct outcome passes(const char *scenario, double calls) {
    const char *data = make_file("data", PAGES);
    if (!make_cold(data))
        exit(77);
    struct outcome outcome = run(scenario, data);
    if (!WIFEXITED(outcome.status) || WEXITSTATUS(outcome.status) != 0)
        FAIL("%s", outcome.report);
    CHECK(reported(&outcome, "calls") == calls && reported(&outcome, "program_calls") == calls);
    CHECK(is_closed(&outcome));
    return outcome;
}

static void test_records(void) {
    struct outcome outcome = passes("records", 2 * RECORDS);
    /* The second time, the records were loaded recently. */
    CHECK(reported(&outcome, "entries") == RECORDS && reported(&outcome, "wasted") == 0);
}

static void test_column(void) {
    struct outcome outcome = passes("column", 1);
    CHECK(reported(&outcome, "entries") == RECORDS);
}

static void test_all(void) {
    struct outcome outcome = passes("all", 1);
    CHECK(reported(&outcome, "left_to_kernel") > 0);
}

int main(int argc, char **argv) {
    const struct scenario scenarios[] = {
        {"records", announces_records, looks_at_records},
        {"column", announces_column, looks_at_column},
        {"all", announces_all, waits},
        {0},
    };
    const struct test tests[] = {
        {"what loads look at is there before, and once", test_records},
        {"a column is announced page by page", test_column},
        {"a range that is walked through is left to the kernel", test_all},
        {0},
    };
    return check_main(argc, argv, scenarios, tests);
}
