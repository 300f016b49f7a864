/*
 * video.pf.c - ../../programs/video.c with its prefetch thread, sliced by hand: what the translator has to come to.
 *
 * Marked with ## are the lines added to the program; all after main is the prefetch thread.
 */
#include "../foreread_preexec.h"

#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define BLOCK 4096

static uint32_t decode(const unsigned char *block, long bytes, uint32_t seen)
{
    for (long n = 0; n < bytes; n++)
        seen = (seen ^ block[n]) * 16777619u;
    return seen;
}

static void pf_main(int argc, char **argv); /* ## */

int main(int argc, char **argv)
{
    foreread_create_prefetch_thread(pf_main, argc, argv); /* ## */
    long stride = BLOCK;
    int backward = 0, work = 1, option;

    while ((option = getopt(argc, argv, "bs:k:")) != -1) {
        switch (option) {
        case 'b':
            backward = 1;
            break;
        case 's':
            stride = atol(optarg);
            break;
        case 'k':
            work = atoi(optarg);
            break;
        default:
            return 2;
        }
    }
    if (optind + 1 != argc || stride < BLOCK || work < 0) {
        fprintf(stderr, "usage: video [-b] [-s STRIDE] [-k WORK] FILE\n");
        return 2;
    }

    int film = open(argv[optind], O_RDONLY);
    if (film < 0) {
        perror(argv[optind]);
        return 1;
    }
    long blocks = lseek(film, 0, SEEK_END) / stride;
    unsigned char block[BLOCK];
    uint32_t seen = 2166136261u;

    for (long n = 0; n < blocks; n++) {
        long at = backward ? blocks - 1 - n : n;
        lseek(film, at * stride, SEEK_SET);
        long got = FOREREAD_COUNTED(read(film, block, BLOCK)); /* ## */
        if (got < 0) {
            perror(argv[optind]);
            return 1;
        }
        for (int again = 0; again < work; again++)
            seen = decode(block, got, seen);
    }
    close(film);
    printf("%08x %ld blocks\n", (unsigned)seen, blocks);
    return 0;
}

static void pf_main(int argc, char **argv)
{
    long stride = BLOCK;
    int backward = 0, work = 1, option;

    while ((option = getopt(argc, argv, "bs:k:")) != -1) {
        switch (option) {
        case 'b':
            backward = 1;
            break;
        case 's':
            stride = atol(optarg);
            break;
        case 'k':
            work = atoi(optarg);
            break;
        default:
            return;
        }
    }
    if (optind + 1 != argc || stride < BLOCK || work < 0)
        return;

    int film = prefetch_open(argv[optind], O_RDONLY);
    if (film < 0)
        return;
    long blocks = prefetch_lseek(film, 0, SEEK_END) / stride;

    for (long n = 0; n < blocks; n++) {
        long at = backward ? blocks - 1 - n : n;
        prefetch_lseek(film, at * stride, SEEK_SET);
        long got = prefetch_read(film, BLOCK);
        if (got < 0)
            return;
    }
    prefetch_close(film);
}
