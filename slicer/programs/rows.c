/*
 * rows.c - the rows of a table in the order of an index.
 *
 *     rows [-k WORK] [-b BYTES] INDEX TABLE
 *
 * INDEX holds offsets of rows in TABLE, 64 bits each. Each row, of BYTES (4096), is sought and read through stdio,
 * and its bytes are added up WORK times (1).
 *
 * Prints a checksum, and the number of rows.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    int work = 1, option;
    size_t bytes = 4096;

    while ((option = getopt(argc, argv, "k:b:")) != -1) {
        if (option == 'k')
            work = atoi(optarg);
        else if (option == 'b')
            bytes = (size_t)atol(optarg);
        else
            return 2;
    }
    if (optind + 2 != argc) {
        fprintf(stderr, "usage: rows [-k WORK] [-b BYTES] INDEX TABLE\n");
        return 2;
    }
    FILE *order = fopen(argv[optind], "rb"), *table = fopen(argv[optind + 1], "rb");
    unsigned char *row = malloc(bytes);
    if (order == NULL || table == NULL || row == NULL) {
        perror(argv[optind]);
        return 1;
    }
    uint64_t place, sum = 0;
    long rows = 0;
    while (fread(&place, sizeof place, 1, order) == 1) {
        if (fseeko(table, (off_t)place, SEEK_SET) != 0 || fread(row, 1, bytes, table) != bytes) {
            fprintf(stderr, "rows: the table ends before %llu\n", (unsigned long long)place);
            return 1;
        }
        for (int again = 0; again < work; again++)
            for (size_t n = 0; n < bytes; n++)
                sum = sum * 31 + row[n];
        rows++;
    }
    printf("%016llx %ld rows\n", (unsigned long long)sum, rows);
    return 0;
}
