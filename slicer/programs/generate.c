/*
 * generate.c - generates the data of the programs in this folder, always the same.
 *
 *     generate film MIB FILE            random bytes
 *     generate volume BRICK FILE        256x256x256 voxels in bricks of BRICK (raycast.c)
 *     generate points LOG2 FILE         2^LOG2 complex numbers, three tones and noise (fft.c)
 *     generate index MIB FILE           offsets of random pages of a file of MIB MiB, an eighth of their number (rows.c)
 */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SIDE 256

static uint32_t state = 2463534242u;

/* Marsaglia's xorshift of 32 bits. */
static uint32_t any(void)
{
    state ^= state << 13;
    state ^= state >> 17;
    state ^= state << 5;
    return state;
}

static void film(long mebibytes, FILE *file)
{
    for (long n = 0; n < mebibytes << 18; n++) {
        uint32_t word = any();
        fwrite(&word, sizeof word, 1, file);
    }
}

/* Shells around the centre, denser inside, with some noise. */
static int density(int x, int y, int z)
{
    double dx = x - SIDE / 2, dy = y - SIDE / 2, dz = z - SIDE / 2;
    double radius = sqrt(dx * dx + dy * dy + dz * dz);
    double shell = 0.5 + 0.5 * cos(radius / 6);

    return (int)(shell * 200 * exp(-radius / 120)) + (int)(any() % 16);
}

static void volume(int brick, FILE *file)
{
    for (int bz = 0; bz < SIDE; bz += brick)
        for (int by = 0; by < SIDE; by += brick)
            for (int bx = 0; bx < SIDE; bx += brick)
                for (int z = bz; z < bz + brick; z++)
                    for (int y = by; y < by + brick; y++)
                        for (int x = bx; x < bx + brick; x++)
                            putc(density(x, y, z), file);
}

/* Tones at a third, a fifth and an eighth of the points, the last the loudest. */
static void points(int log2, FILE *file)
{
    long count = 1L << log2, tones[] = { count / 3, count / 5, count / 8 };

    for (long n = 0; n < count; n++) {
        double re = (any() % 1000) / 1e6, im = 0;
        for (int tone = 0; tone < 3; tone++) {
            double angle = 2 * M_PI * (double)(tones[tone] * n % count) / (double)count;
            re += (tone + 1) * cos(angle);
            im += (tone + 1) * sin(angle);
        }
        float point[2] = { (float)re, (float)im };
        fwrite(point, sizeof point, 1, file);
    }
}

static void places(long mebibytes, FILE *file)
{
    for (long n = 0; n < mebibytes * 32; n++) {
        uint64_t place = (uint64_t)(any() % (mebibytes * 256)) * 4096;
        fwrite(&place, sizeof place, 1, file);
    }
}

int main(int argc, char **argv)
{
    FILE *file = argc == 4 ? fopen(argv[3], "w") : NULL;

    if (file != NULL && strcmp(argv[1], "film") == 0)
        film(atol(argv[2]), file);
    else if (file != NULL && strcmp(argv[1], "volume") == 0)
        volume(atoi(argv[2]), file);
    else if (file != NULL && strcmp(argv[1], "points") == 0)
        points(atoi(argv[2]), file);
    else if (file != NULL && strcmp(argv[1], "index") == 0)
        places(atol(argv[2]), file);
    else
        fprintf(stderr, "usage: generate film|volume|points|index SIZE FILE\n");
    return file == NULL || fclose(file) != 0;
}
