/*
 * bricks.c - light along rays through a volume of which each ray needs only a small part.
 *
 *     bricks [-k WORK] [-v X,Y,Z] [-n RAYS] [-s SIDE] VOLUME
 *
 * The volume has SIDE voxels along each edge (800), one byte each, in bricks of 16 voxels: 4 KiB per brick, one
 * after the other. RAYS by RAYS (160) rays start evenly spread on its first face and go along X,Y,Z (17,17,18). A
 * brick is read by pread when the first ray meets it, and kept. Each sample is weighted WORK times (1).
 *
 * Prints the light, and the number of bricks read.
 */
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define BRICK 16
#define BYTES (BRICK * BRICK * BRICK)

static int file, across;
static long loaded;
static unsigned char **bricks;

static unsigned char *load(long number)
{
    unsigned char *brick = malloc(BYTES);

    if (brick == NULL || pread(file, brick, BYTES, number * BYTES) != BYTES) {
        perror("reading");
        exit(1);
    }
    loaded++;
    return brick;
}

static int voxel(int x, int y, int z)
{
    long number = ((long)(z / BRICK) * across + y / BRICK) * across + x / BRICK;

    if (bricks[number] == NULL)
        bricks[number] = load(number);
    return bricks[number][(z % BRICK * BRICK + y % BRICK) * BRICK + x % BRICK];
}

int main(int argc, char **argv)
{
    double dx = 17, dy = 17, dz = 18, sum = 0;
    int rays = 160, side = 800, work = 1, option;

    while ((option = getopt(argc, argv, "k:v:n:s:")) != -1)
        switch (option) {
        case 'k':
            work = atoi(optarg);
            break;
        case 'v':
            if (sscanf(optarg, "%lf,%lf,%lf", &dx, &dy, &dz) != 3)
                return 2;
            break;
        case 'n':
            rays = atoi(optarg);
            break;
        case 's':
            side = atoi(optarg);
            break;
        default:
            return 2;
        }
    if (optind + 1 != argc || side < BRICK || rays < 1) {
        fprintf(stderr, "usage: bricks [-k WORK] [-v X,Y,Z] [-n RAYS] [-s SIDE] VOLUME\n");
        return 2;
    }
    file = open(argv[optind], O_RDONLY);
    across = side / BRICK;
    bricks = calloc((size_t)across * across * across, sizeof *bricks);
    if (file < 0 || bricks == NULL) {
        perror(argv[optind]);
        return 1;
    }
    double length = sqrt(dx * dx + dy * dy + dz * dz), step = (double)side / rays;
    for (int row = 0; row < rays; row++)
        for (int column = 0; column < rays; column++) {
            double x = column * step, y = row * step, z = 0, light = 0, through = 1;
            while (x >= 0 && y >= 0 && z >= 0 && x < side && y < side && z < side) {
                double glow = voxel((int)x, (int)y, (int)z) / 256.0;
                for (int again = 0; again < work; again++)
                    light += through * 0.01 * glow * glow / work;
                through *= 1 - 0.01 * glow;
                x += dx / length;
                y += dy / length;
                z += dz / length;
            }
            sum += light;
        }
    printf("%.9g %ld bricks\n", sum, loaded);
    close(file);
    return 0;
}
