/*
 * fft.c - the Fourier transform of more points than fit into memory.
 *
 *     fft [-k WORK] LOG2 FILE
 *
 * FILE holds 2^LOG2 complex numbers, each two floats; LOG2 is 13 or more. The same amount is written behind them:
 * each pass reads one half of the file and writes the other, 4096 bytes at a time. A pass takes the transform eight,
 * four or two times further (Stockham's order, which needs no sorting at the end): 2^18 points need six passes. In
 * memory are eight units that were read and eight to be written.
 *
 * Prints where the result begins, its three largest values, a checksum, and the number of units read. Each butterfly
 * is calculated WORK times (1).
 */
#include <complex.h>
#include <fcntl.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define UNIT 4096
#define POINTS (UNIT / 8) /* points per unit */
#define MOST 8            /* the largest step of a pass */

typedef float complex point;

static int file;
static long units_read;

static void fail(const char *what)
{
    perror(what);
    exit(1);
}

static void read_unit(long first, point *to)
{
    lseek(file, first * 8, SEEK_SET);
    if (read(file, to, UNIT) != UNIT)
        fail("reading");
    units_read++;
}

static void write_unit(long first, const point *from)
{
    lseek(file, first * 8, SEEK_SET);
    if (write(file, from, UNIT) != UNIT)
        fail("writing");
}

/* The transform of `radix` values that are `stride` apart. */
static void butterfly(const point *in, long stride, int radix, double complex *out)
{
    static const double complex roots[MOST] = {
        1, M_SQRT1_2 - M_SQRT1_2 * I, -I, -M_SQRT1_2 - M_SQRT1_2 * I,
        -1, -M_SQRT1_2 + M_SQRT1_2 * I, I, M_SQRT1_2 + M_SQRT1_2 * I,
    };

    for (int k = 0; k < radix; k++) {
        double complex sum = 0;
        for (int j = 0; j < radix; j++)
            sum += in[j * stride] * roots[j * k * (MOST / radix) % MOST];
        out[k] = sum;
    }
}

/*
 * One pass: `done` is the product of the steps so far. Point q + done * p of each of `radix` parts of the input goes
 * to the places done * (radix * p + k) + q of the output.
 */
static void pass(long count, long done, int radix, long from, long to, int work)
{
    static point in[MOST * POINTS], out[MOST * POINTS];
    long left = count / done;

    for (long first = 0; first < count / radix; first += POINTS) {
        for (int j = 0; j < radix; j++)
            read_unit(from + first + j * (count / radix), in + j * POINTS);
        for (long n = 0; n < POINTS; n++) {
            long p = (first + n) / done, q = (first + n) % done;
            double complex values[MOST];
            for (int again = 0; again < work; again++)
                butterfly(in + n, POINTS, radix, values);
            for (int k = 0; k < radix; k++) {
                double complex turn = cexp(-2 * M_PI * I * (double)(p * k) / (double)left);
                /* Short runs are stored together in one piece; a longer one fills its unit. */
                long place = done < POINTS ? done * (radix * p + k) + q - first * radix
                                           : k * POINTS + n;
                out[place] = (point)(values[k] * turn);
            }
        }
        for (int k = 0; k < radix; k++) {
            long p = first / done, q = first % done;
            long place = done < POINTS ? first * radix + k * POINTS : done * (radix * p + k) + q;
            write_unit(to + place, out + k * POINTS);
        }
    }
}

/* Reads the result. */
static void report(long count, long from)
{
    static point unit[POINTS];
    long best[3] = { 0, 0, 0 };
    double size[3] = { -1, -1, -1 };
    double sum = 0;

    for (long first = 0; first < count; first += POINTS) {
        read_unit(from + first, unit);
        for (long n = 0; n < POINTS; n++) {
            double now = cabsf(unit[n]);
            sum += now;
            for (int rank = 0; rank < 3; rank++)
                if (now > size[rank]) {
                    for (int lower = 2; lower > rank; lower--) {
                        size[lower] = size[lower - 1];
                        best[lower] = best[lower - 1];
                    }
                    size[rank] = now;
                    best[rank] = first + n;
                    break;
                }
        }
    }
    printf("at %ld: %ld (%.3f), %ld (%.3f), %ld (%.3f); %.6e; %ld units\n", from, best[0],
           size[0] / count, best[1], size[1] / count, best[2], size[2] / count, sum, units_read);
}

int main(int argc, char **argv)
{
    int work = 1, option;

    while ((option = getopt(argc, argv, "k:")) != -1) {
        if (option != 'k')
            return 2;
        work = atoi(optarg);
    }
    int log2 = optind + 2 == argc ? atoi(argv[optind]) : 0;
    if (log2 < 13 || log2 > 40 || work < 1) {
        fprintf(stderr, "usage: fft [-k WORK] LOG2 FILE\n");
        return 2;
    }

    long count = 1L << log2, from = 0, to = count;
    file = open(argv[optind + 1], O_RDWR);
    if (file < 0)
        fail(argv[optind + 1]);
    for (long done = 1; done < count;) {
        int radix = count / done < MOST ? (int)(count / done) : MOST;
        pass(count, done, radix, from, to, work);
        done *= radix;
        long other = from;
        from = to;
        to = other;
    }
    report(count, from);
    close(file);
    return 0;
}
