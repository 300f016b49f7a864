/*
 * raycast.c - direct volume rendering of 256x256x256 voxels by casting rays.
 *
 *     raycast [-b BRICK] [-v X,Y,Z] [-n PIXELS] [-k WORK] VOLUME
 *     raycast-early … -t OPACITY VOLUME
 *
 * The volume is a file of bricks, BRICK voxels wide (16 or 32), brick after brick, x running fastest among
 * bricks and within them, a byte per voxel. A brick is read when the first ray meets it, and kept.
 *
 * Rays are parallel, along X,Y,Z (0,0,1: straight through), and start on a square of PIXELS by PIXELS (256), one
 * voxel apart, centred on the volume. Along a ray there is a sample per voxel, shaded WORK times (1). Compiled with
 * EARLY_TERMINATION, it has an option that ends a ray at the given opacity (0 to 1): the bricks that are read then
 * depend on the content of the bricks.
 *
 * Straight through, all 4096 bricks of 16 or 512 of 32 voxels are read; along 17,17,18 it is 3714 or 482, the pages
 * of Vol Vis 1 to 4 in the AASFP paper's Table 1.
 *
 * Prints a checksum of the image, and the number of bricks read.
 */
#include <fcntl.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define SIDE 256

#ifdef EARLY_TERMINATION
#define OPTIONS "b:v:n:k:t:"
#else
#define OPTIONS "b:v:n:k:"
#endif

struct vector {
    double x, y, z;
};

struct volume {
    int file;
    int brick;   /* voxels */
    int across;  /* bricks in a row */
    long loaded; /* bricks read so far */
    unsigned char **bricks;
};

struct view {
    struct vector along, right, down;
    int pixels;
    int work;
#ifdef EARLY_TERMINATION
    double opaque;
#endif
};

static struct vector normalize(struct vector v)
{
    double length = sqrt(v.x * v.x + v.y * v.y + v.z * v.z);
    struct vector unit = { v.x / length, v.y / length, v.z / length };
    return unit;
}

static struct vector cross(struct vector a, struct vector b)
{
    struct vector c = { a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x };
    return c;
}

static void look_along(struct view *view, struct vector along)
{
    struct vector up = { 0, 1, 0 };

    view->along = normalize(along);
    if (fabs(view->along.y) > 0.999) {
        up.y = 0;
        up.z = 1;
    }
    view->right = normalize(cross(up, view->along));
    view->down = cross(view->along, view->right);
}

static void load_brick(struct volume *volume, long number)
{
    long bytes = (long)volume->brick * volume->brick * volume->brick;
    unsigned char *brick = malloc(bytes);

    if (brick == NULL) {
        perror("raycast");
        exit(1);
    }
    lseek(volume->file, number * bytes, SEEK_SET);
    if (read(volume->file, brick, bytes) != bytes) {
        fprintf(stderr, "raycast: the volume ends before brick %ld\n", number);
        exit(1);
    }
    volume->bricks[number] = brick;
    volume->loaded++;
}

/* The voxel at a place inside the volume. */
static int voxel(struct volume *volume, int x, int y, int z)
{
    int brick = volume->brick, across = volume->across;
    long number = ((long)(z / brick) * across + y / brick) * across + x / brick;

    if (volume->bricks[number] == NULL)
        load_brick(volume, number);
    x %= brick;
    y %= brick;
    z %= brick;
    return volume->bricks[number][(z * brick + y) * brick + x];
}

/* Contribution of a sample: emission and absorption by density, more at each level of detail. */
static double shade(int density, int work, double *light)
{
    double opacity = 0, glow = density / 255.0;

    for (int n = 0; n < work; n++) {
        double level = glow * (n + 1);
        level -= floor(level);
        opacity += 0.02 * level * glow;
        *light += level * glow / (1 + n);
    }
    return opacity / (work > 0 ? work : 1);
}

static double cast_ray(struct volume *volume, const struct view *view, double u, double v)
{
    double reach = SIDE * 0.9; /* more than half of a diagonal */
    double x = SIDE / 2.0 + u * view->right.x + v * view->down.x - reach * view->along.x;
    double y = SIDE / 2.0 + u * view->right.y + v * view->down.y - reach * view->along.y;
    double z = SIDE / 2.0 + u * view->right.z + v * view->down.z - reach * view->along.z;
    double brightness = 0, through = 1;

    for (int step = 0; step < (int)(2 * reach); step++) {
        if (x >= 0 && y >= 0 && z >= 0 && x < SIDE && y < SIDE && z < SIDE) {
            double light = 0;
            double opacity = shade(voxel(volume, (int)x, (int)y, (int)z), view->work, &light);
            brightness += through * light;
            through *= 1 - opacity;
#ifdef EARLY_TERMINATION
            if (view->opaque > 0 && 1 - through >= view->opaque)
                break;
#endif
        }
        x += view->along.x;
        y += view->along.y;
        z += view->along.z;
    }
    return brightness;
}

int main(int argc, char **argv)
{
    struct volume volume = { -1, 16, 0, 0, NULL };
    struct view view = { .pixels = SIDE, .work = 1 };
    struct vector along = { 0, 0, 1 };
    int option;

    while ((option = getopt(argc, argv, OPTIONS)) != -1) {
        switch (option) {
        case 'b':
            volume.brick = atoi(optarg);
            break;
        case 'v':
            if (sscanf(optarg, "%lf,%lf,%lf", &along.x, &along.y, &along.z) != 3)
                return 2;
            break;
        case 'n':
            view.pixels = atoi(optarg);
            break;
        case 'k':
            view.work = atoi(optarg);
            break;
#ifdef EARLY_TERMINATION
        case 't':
            view.opaque = atof(optarg);
            break;
#endif
        default:
            return 2;
        }
    }
    if (optind + 1 != argc || (volume.brick != 16 && volume.brick != 32)) {
        fprintf(stderr, "usage: raycast [-b 16|32] [-v X,Y,Z] [-n PIXELS] [-k WORK] VOLUME\n");
        return 2;
    }

    volume.file = open(argv[optind], O_RDONLY);
    if (volume.file < 0) {
        perror(argv[optind]);
        return 1;
    }
    volume.across = SIDE / volume.brick;
    volume.bricks = calloc((size_t)volume.across * volume.across * volume.across,
                           sizeof *volume.bricks);
    if (volume.bricks == NULL) {
        perror("raycast");
        return 1;
    }
    look_along(&view, along);

    uint64_t checksum = 14695981039346656037u;
    for (int row = 0; row < view.pixels; row++) {
        for (int column = 0; column < view.pixels; column++) {
            double u = column + 0.5 - view.pixels / 2.0, v = row + 0.5 - view.pixels / 2.0;
            double brightness = cast_ray(&volume, &view, u, v);
            checksum = (checksum ^ (uint64_t)(brightness * 1000)) * 1099511628211u;
        }
    }
    close(volume.file);
    printf("%016llx %ld bricks\n", (unsigned long long)checksum, volume.loaded);
    return 0;
}
