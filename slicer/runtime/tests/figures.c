/*
 * figures.c - Figures 2 and 3 of the long paper in C: the computation thread opens a file and hands over its
 * descriptor and values; reads are prefetched. Where the figures' prefetch thread reads for both threads, this
 * program reads for itself, because its input must not depend on the prefetch thread.
 */
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

#define PAGES 400
#define PAGE 4096

/* The program waits until this many pages of the data file are in memory before it reads: the prefetch thread has
 * fetched them. */
static size_t wanted;

static bool is_there(const void *path) {
    return resident(path) >= wanted;
}

/* ---- Figure 2 ---- */

static int fp;

static void prefetch_figure_2(int argc, char **argv) {
    (void)argc, (void)argv;
    int i;
    foreread_synchronize(1, FOREREAD_WAIT);
    fp = foreread_receive_fd(1);
    inform_open(fp);
    for (i = PAGES / 4 - 1; i >= 0; i--) {
        prefetch_lseek(fp, i * 4 * PAGE, SEEK_SET);
        prefetch_read(fp, 4);
    }
    inform_close(fp);
    leave_sign();
}

static int figure_2(int argc, char **argv) {
    (void)argc;
    int i;
    int data[PAGES / 4];
    sleep_ms(20);
    fp = open(argv[2], O_RDONLY);
    foreread_send_fd(1, fp);
    foreread_synchronize(1, FOREREAD_SIGNAL);
    wanted = PAGES / 4;
    CHECK(comes_true(is_there, argv[2]));
    for (i = PAGES / 4 - 1; i >= 0; i--) {
        lseek(fp, i * 4 * PAGE, SEEK_SET);
        CHECK(read(fp, &data[i], 4) == 4);
        foreread_call();
    }
    for (i = 0; i < PAGES / 4; i++) {
        char text[16];
        snprintf(text, sizeof text, "%d\n", i * 4);
        CHECK(memcmp(&data[i], text, strlen(text) < 4 ? strlen(text) : 4) == 0);
    }
    close(fp);
    await_slice();
    return 0;
}

/* ---- Figure 3 ---- */

static void prefetch_figure_3(int argc, char **argv) {
    (void)argc, (void)argv;
    int index;
    fp = foreread_receive_fd(1);
    inform_open(fp);
    foreread_receive(2, &index, sizeof index);
    prefetch_lseek(fp, index * PAGE, SEEK_SET);
    prefetch_read(fp, 4);
    inform_close(fp);
    leave_sign();
}

/* The same with a configuration file that the prefetch thread can read by itself. */
static void prefetch_figure_3_alone(int argc, char **argv) {
    (void)argc;
    int index;
    fp = prefetch_open(argv[2], O_RDONLY);
    FILE *config = prefetch_fopen(path_of("config"), "r");
    prefetch_fseek(config, 10, SEEK_SET);
    EXPECT(fetch_fscanf(config, "%d", &index) == 1);
    prefetch_fclose(config);
    prefetch_lseek(fp, index * PAGE, SEEK_SET);
    prefetch_read(fp, 4);
    prefetch_close(fp);
    leave_sign();
}

static int figure_3(int argc, char **argv, bool alone) {
    (void)argc;
    int index, data = 0;
    fp = open(argv[2], O_RDONLY);
    if (!alone)
        foreread_send_fd(1, fp);
    FILE *config = fopen(path_of("config"), "r");
    fseek(config, 10, SEEK_SET);
    CHECK(fscanf(config, "%d", &index) == 1);
    if (alone)
        foreread_call();
    else
        foreread_send(2, &index, sizeof index);
    wanted = 1;
    CHECK(comes_true(is_there, argv[2]));
    lseek(fp, index * PAGE, SEEK_SET);
    CHECK(read(fp, &data, 4) == 4);
    foreread_call();
    CHECK(memcmp(&data, "321\n", 4) == 0);
    close(fp);
    await_slice();
    return 0;
}

static int figure_3_sent(int argc, char **argv) {
    return figure_3(argc, argv, false);
}

static int figure_3_alone(int argc, char **argv) {
    return figure_3(argc, argv, true);
}

static void agrees(const char *scenario, double calls, double entries) {
    const char *data = make_file("data", PAGES);
    FILE *config = fopen(path_of("config"), "w");
    fprintf(config, "%10s321\n", "");
    fclose(config);
    if (!make_cold(data))
        exit(77);
    struct outcome outcome = run(scenario, data);
    if (!WIFEXITED(outcome.status) || WEXITSTATUS(outcome.status) != 0)
        FAIL("%s", outcome.report);
    CHECK(strcmp(reported_text(&outcome, "ended"), "finished") == 0);
    CHECK(reported(&outcome, "calls") == calls && reported(&outcome, "program_calls") == calls);
    /* All announced bytes were read. */
    CHECK(reported(&outcome, "entries") >= entries && reported(&outcome, "wasted") == 0);
    CHECK(is_closed(&outcome));
    double read = reported(&outcome, "useful") + reported(&outcome, "late");
    /* A momentarily slow device may be taken for a rotating disk, on which gaps are read with their neighbours. */
    if (read + reported(&outcome, "infill") < entries * PAGE || read > calls * PAGE)
        FAIL("%s", outcome.report);
}

static void test_figure_2(void) {
    agrees("figure_2", PAGES / 4, PAGES / 4);
}

static void test_figure_3(void) {
    agrees("figure_3", 1, 1);
}

static void test_figure_3_alone(void) {
    /* Data that was really read needs no entry. */
    agrees("figure_3_alone", 2, 1);
}

int main(int argc, char **argv) {
    const struct scenario scenarios[] = {
        {"figure_2", prefetch_figure_2, figure_2},
        {"figure_3", prefetch_figure_3, figure_3_sent},
        {"figure_3_alone", prefetch_figure_3_alone, figure_3_alone},
        {0},
    };
    const struct test tests[] = {
        {"figure 2: what the prefetch thread announces is there before it is read", test_figure_2},
        {"figure 3: descriptor and value are sent", test_figure_3},
        {"figure 3: or the prefetch thread reads the configuration itself", test_figure_3_alone},
        {0},
    };
    return check_main(argc, argv, scenarios, tests);
}
