/*
 * profile.c - density of 256x256x256 voxels as a function of their distance from a point, in a mapped volume.
 *
 *     profile [-c X,Y,Z] [-k WORK] VOLUME
 *
 * The volume has raycast's format: a file of bricks, 16 voxels wide, x running fastest among bricks and within them,
 * a byte per voxel. It is mapped, and its voxels are read in place, brick by brick from the one nearest to the point
 * (the volume's centre) outward; each voxel is weighted WORK times (1).
 *
 * Prints a checksum of the profile, and the number of bricks.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define BRICK 16
#define ACROSS 16
#define BRICKS (ACROSS * ACROSS * ACROSS)

typedef unsigned char brick[BRICK][BRICK][BRICK];

struct place {
    int number;
    long distance;
};

static struct place places[BRICKS];

static int nearer(const void *a, const void *b)
{
    const struct place *one = a, *other = b;
    if (one->distance != other->distance)
        return one->distance < other->distance ? -1 : 1;
    return one->number - other->number;
}

static long distance(int number, const int centre[3])
{
    long x = number % ACROSS * BRICK + BRICK / 2 - centre[0];
    long y = number / ACROSS % ACROSS * BRICK + BRICK / 2 - centre[1];
    long z = number / ACROSS / ACROSS * BRICK + BRICK / 2 - centre[2];
    return x * x + y * y + z * z;
}

static uint64_t weigh(brick *voxels, int work)
{
    uint64_t sum = 0;

    for (int z = 0; z < BRICK; z++)
        for (int y = 0; y < BRICK; y++)
            for (int x = 0; x < BRICK; x++) {
                unsigned density = (*voxels)[z][y][x];
                for (int n = 0; n < work; n++)
                    sum = sum * 31 + (density ^ sum >> 7);
            }
    return sum;
}

int main(int argc, char **argv)
{
    int centre[3] = { 128, 128, 128 }, work = 1, option;

    while ((option = getopt(argc, argv, "c:k:")) != -1) {
        switch (option) {
        case 'c':
            if (sscanf(optarg, "%d,%d,%d", &centre[0], &centre[1], &centre[2]) != 3)
                return 2;
            break;
        case 'k':
            work = atoi(optarg);
            break;
        default:
            return 2;
        }
    }
    if (optind + 1 != argc) {
        fprintf(stderr, "usage: profile [-c X,Y,Z] [-k WORK] VOLUME\n");
        return 2;
    }

    int file = open(argv[optind], O_RDONLY);
    if (file < 0 || lseek(file, 0, SEEK_END) < (off_t)(BRICKS * sizeof(brick))) {
        fprintf(stderr, "profile: %s is no volume of bricks of %d\n", argv[optind], BRICK);
        return 1;
    }
    brick *volume = mmap(NULL, BRICKS * sizeof(brick), PROT_READ, MAP_PRIVATE, file, 0);
    if (volume == MAP_FAILED) {
        perror("profile");
        return 1;
    }

    for (int n = 0; n < BRICKS; n++) {
        places[n].number = n;
        places[n].distance = distance(n, centre);
    }
    qsort(places, BRICKS, sizeof places[0], nearer);

    uint64_t checksum = 14695981039346656037u;
    for (int n = 0; n < BRICKS; n++)
        checksum = (checksum ^ weigh(&volume[places[n].number], work)) * 1099511628211u;
    printf("%016llx %d bricks\n", (unsigned long long)checksum, BRICKS);
    return 0;
}
