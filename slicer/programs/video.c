/*
 * video.c - reads a film's blocks as a player does, forward or backward, all or every other one.
 *
 *     video [-b] [-s STRIDE] [-k WORK] FILE
 *
 * A block is 4096 bytes; blocks are STRIDE bytes apart (4096). -b reads from the end. Each block is decoded WORK
 * times (1). Prints a checksum of the decoded data, and the number of blocks.
 */
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

int main(int argc, char **argv)
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
        long got = read(film, block, BLOCK);
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
