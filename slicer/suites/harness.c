/*
 * harness.c - turns a test of a compiler into a program that reads a file, at places that its values decide.
 *
 * The tests of compiler test suites compute and read nothing, so that nothing would be sliced. Compiled with
 * -Dmain=test_main -Dexit=test_exit -Dabort=test_abort they run in here. The way in which they end decides where the
 * file is read next, and so do the values that sources.py makes them report: harness_look() of a value, harness_if()
 * of a condition that they check, harness_bytes() of a variable at the end. The slice of such a program is nearly
 * the whole test.
 *
 *   harness FILE    ends as the test does; prints a checksum of the data read
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* Distance of the places, and their number. FILE has PLACES * BLOCK bytes. */
#define BLOCK 4096
#define PLACES 256

/* The test: sources.py appends this function to it, since its main may have any parameters. */
int test_run(int argc, char **argv, char **environment);

static int data = -1;
static unsigned sum;

/* Reads at the place for a value. */
void harness_look(unsigned long value) {
    unsigned char bytes[16];
    off_t place = (off_t)(value % PLACES) * BLOCK;
    ssize_t got = pread(data, bytes, sizeof bytes, place);
    for (ssize_t n = 0; n < got; n++)
        sum = sum * 31 + bytes[n];
}

/* Reports a condition that the test checks: each condition has two places of its own. */
int harness_if(int condition) {
    static unsigned long conditions;
    harness_look(16 + 2 * conditions++ + (condition != 0));
    return condition;
}

/* Reports the bytes of a variable. */
void harness_bytes(const void *data, unsigned long length) {
    const unsigned char *bytes = data;
    unsigned long mixed = length;
    for (unsigned long n = 0; n < length; n++)
        mixed = mixed * 31 + bytes[n];
    harness_look(mixed);
}

static void say(void) {
    printf("read %08x\n", sum);
    fflush(stdout);
}

void test_exit(int status) {
    harness_look(3 + (unsigned)status);
    say();
    exit(status);
}

void test_abort(void) {
    harness_look(2);
    say();
    abort();
}

int main(int argc, char **argv, char **environment) {
    if (argc != 2 || (data = open(argv[1], O_RDONLY)) < 0) {
        fprintf(stderr, "usage: %s FILE\n", argv[0]);
        return 125;
    }
    harness_look(1);
    int status = test_run(1, argv, environment);
    harness_look(3 + (unsigned)status);
    say();
    return status & 0x7f;
}
