/* messages.c - synchronization points and channels. */
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

#define MESSAGES 6000

/* ---- points ---- */

static void waits(int argc, char **argv) {
    (void)argc, (void)argv;
    for (int n = 0; n < 100; n++) {
        foreread_synchronize(3, FOREREAD_WAIT);
        /* Each process has its own n; the program's is sent. */
        int sent;
        EXPECT(foreread_receive(0, &sent, sizeof sent) == sizeof sent && sent == n);
    }
    foreread_synchronize(4, FOREREAD_WAIT);
}

static int signals(int argc, char **argv) {
    (void)argc, (void)argv;
    for (int n = 0; n < 100; n++) {
        foreread_send(0, &n, sizeof n);
        foreread_synchronize(3, FOREREAD_SIGNAL);
        if (n % 10 == 0)
            sleep_ms(3);
    }
    sleep_ms(50);
    return 0;
}

/* Signals early, also at points that do not exist. A wait on this side does nothing. */
static int signals_early(int argc, char **argv) {
    (void)argc, (void)argv;
    foreread_synchronize(-1, FOREREAD_SIGNAL);
    foreread_synchronize(FOREREAD_POINTS, FOREREAD_SIGNAL);
    foreread_synchronize(3, FOREREAD_WAIT);
    foreread_synchronize(3, FOREREAD_SIGNAL);
    foreread_synchronize(3, FOREREAD_SIGNAL);
    await_slice();
    return 0;
}

static void waits_twice(int argc, char **argv) {
    (void)argc, (void)argv;
    sleep_ms(50);
    foreread_synchronize(3, FOREREAD_WAIT);
    foreread_synchronize(3, FOREREAD_SIGNAL);
    foreread_synchronize(3, FOREREAD_WAIT);
    leave_sign();
}

/* ---- channels ---- */

/* Sizes from 0 to more than a page, at all positions relative to the ring's end. */
static size_t size_of(int n) {
    return (size_t)n * 7919 % 5000;
}

static unsigned char byte_of(int n) {
    return (unsigned char)(n * 31 + 7);
}

/* Messages after which the sender waits for the receiver: three quarters of a ring. */
#define PORTION 300

/* The sign of a portion that was received. */
static const char *portion(int n) {
    static char name[32];
    snprintf(name, sizeof name, "portion-%d", n);
    return name;
}

static bool is_received(const void *sign) {
    return resident(path_of(sign)) != 0;
}

static void receives(int argc, char **argv) {
    (void)argc, (void)argv;
    static unsigned char data[5000];
    for (int n = 0; n < MESSAGES; n++) {
        size_t bytes = foreread_receive(n % 3, data, sizeof data);
        EXPECT(bytes == size_of(n));
        for (size_t at = 0; at < bytes; at++)
            EXPECT(data[at] == byte_of(n));
        foreread_synchronize(0, FOREREAD_SIGNAL);
        if (n % PORTION == PORTION - 1)
            leave_sign_at(path_of(portion(n / PORTION)));
    }
    /* The last message, of which only two bytes are stored. */
    EXPECT(foreread_receive(9, data, 2) == 4 && data[0] == 'e' && data[1] == 'n');
    leave_sign();
}

static void send_message(int n) {
    static unsigned char data[5000];
    memset(data, byte_of(n), size_of(n));
    foreread_send(n % 3, data, size_of(n));
}

static int sends(int argc, char **argv) {
    (void)argc, (void)argv;
    for (int n = 0; n < MESSAGES; n++) {
        send_message(n);
        if (n % PORTION == PORTION - 1)
            CHECK(comes_true(is_received, portion(n / PORTION)));
    }
    foreread_send(9, "end", 4);
    await_slice();
    return 0;
}

/* In another order than they were sent. */
static void receives_backward(int argc, char **argv) {
    (void)argc, (void)argv;
    for (int channel = 9; channel >= 0; channel--) {
        int got;
        EXPECT(foreread_receive(channel, &got, sizeof got) == sizeof got && got == channel * 10);
        EXPECT(foreread_receive(channel, &got, sizeof got) == sizeof got && got == channel * 10 + 1);
    }
    leave_sign();
}

static int sends_forward(int argc, char **argv) {
    (void)argc, (void)argv;
    for (int channel = 0; channel < 10; channel++)
        for (int n = 0; n < 2; n++) {
            int value = channel * 10 + n;
            foreread_send(channel, &value, sizeof value);
        }
    await_slice();
    return 0;
}

static void never_receives(int argc, char **argv) {
    (void)argc, (void)argv;
    leave_sign();
    sleep_ms(200);
    for (char data[4096];;)
        foreread_receive(1, data, sizeof data);
}

static int sends_too_much(int argc, char **argv) {
    (void)argc, (void)argv;
    static char data[4096];
    for (int n = 0; n < 100000; n++)
        foreread_send(1, data, sizeof data);
    await_slice();
    return 0;
}

/* ---- descriptors ---- */

static void receives_fd(int argc, char **argv) {
    (void)argc, (void)argv;
    int fd = foreread_receive_fd(5);
    char line[8] = "";
    EXPECT(fetch_read(fd, line, 2) == 2 && strcmp(line, "3\n") == 0);
    EXPECT(prefetch_lseek(fd, 0, SEEK_CUR) == 3 * 4096 + 2);
    /* The descriptor of a pipe: a blind one. */
    fd = foreread_receive_fd(5);
    EXPECT(fd >= 0 && prefetch_read(fd, 10) == 10);
    leave_sign();
}

static int sends_fd(int argc, char **argv) {
    (void)argc;
    int fd = open(argv[2], O_RDONLY);
    CHECK(lseek(fd, 3 * 4096, SEEK_SET) == 3 * 4096);
    foreread_send_fd(5, fd);
    foreread_send_fd(5, STDOUT_FILENO);
    await_slice();
    CHECK(lseek(fd, 0, SEEK_CUR) == 3 * 4096);
    return 0;
}

/* Standard input that is a file: read from the program's offset on, without moving that offset. */
static void reads_input(int argc, char **argv) {
    (void)argc, (void)argv;
    char line[64];
    EXPECT(fetch_fgets(line, sizeof line, stdin) != NULL && strcmp(line, "1\n") == 0);
    leave_sign();
}

static int keeps_input(int argc, char **argv) {
    (void)argc, (void)argv;
    await_slice();
    CHECK(lseek(STDIN_FILENO, 0, SEEK_CUR) == 4096);
    return 0;
}

static void ends(const char *scenario, const char *argument, const char *how) {
    struct outcome outcome = run(scenario, argument);
    if (outcome.status != 0 || strcmp(reported_text(&outcome, "ended"), how) != 0)
        FAIL("%s: %d %s", scenario, outcome.status, outcome.report);
}

static void test_points(void) {
    ends("waits", NULL, "with the program");
    ends("waits_twice", NULL, "finished");
}

static void test_channels(void) {
    for (int n = 0; n < MESSAGES / PORTION; n++)
        CHECK(make_cold(make_file(portion(n), 1)));
    ends("receives", NULL, "finished");
    ends("receives_backward", NULL, "finished");
}

static void test_full(void) {
    ends("never_receives", NULL, "a message was lost");
}

static void test_descriptors(void) {
    ends("receives_fd", make_file("data", 5), "finished");
}

static void test_input(void) {
    int fd = open(make_file("input", 3), O_RDONLY);
    CHECK(lseek(fd, 4096, SEEK_SET) == 4096 && dup2(fd, STDIN_FILENO) == STDIN_FILENO);
    ends("reads_input", NULL, "finished");
}

int main(int argc, char **argv) {
    const struct scenario scenarios[] = {
        {"waits", waits, signals},
        {"waits_twice", waits_twice, signals_early},
        {"receives", receives, sends},
        {"receives_backward", receives_backward, sends_forward},
        {"never_receives", never_receives, sends_too_much},
        {"receives_fd", receives_fd, sends_fd},
        {"reads_input", reads_input, keeps_input},
        {0},
    };
    const struct test tests[] = {
        {"a point's n-th wait lasts until its n-th signal", test_points},
        {"messages arrive whole and in their channel's order", test_channels},
        {"a full ring ends the receiver, and nobody waits", test_full},
        {"a descriptor sent is the file, from the program's place on", test_descriptors},
        {"standard input that is a file is read without moving it", test_input},
        {0},
    };
    return check_main(argc, argv, scenarios, tests);
}
