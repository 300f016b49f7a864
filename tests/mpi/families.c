/* Reads and writes the file in argv[2] with the family of calls in argv[1], as tests/tests/mpi.rs expects. The file has 1 MiB. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK = 4096, ROUNDS = 4 };

static int rank, ranks;
static MPI_File file;
static char data[2 * BLOCK];

static int is(const char *name, const char *wanted) { return strcmp(name, wanted) == 0; }

/* The ranks' blocks alternate. */
static MPI_Offset mine(int round) { return ((MPI_Offset)round * ranks + rank) * BLOCK; }

static void view(MPI_Offset displacement, MPI_Datatype elementary, MPI_Datatype type) {
    MPI_Type_commit(&type);
    MPI_File_set_view(file, displacement, elementary, type, "native", MPI_INFO_NULL);
}

static void by_view(const char *how) {
    MPI_Datatype type, inner;
    int sizes[2] = {16, 32}, parts[2] = {8, 16}, starts[2] = {8 * (rank / 2), 16 * (rank % 2)};
    if (is(how, "vector")) {
        /* 8 blocks of 100 integers, 250 integers apart. */
        MPI_Type_vector(8, 100, 250, MPI_INT, &type);
        view(1000 + 100000 * rank, MPI_INT, type);
    } else if (is(how, "subarray")) {
        MPI_Type_create_subarray(2, sizes, parts, starts, MPI_ORDER_C, MPI_DOUBLE, &type);
        view(0, MPI_DOUBLE, type);
    } else if (is(how, "fortran")) {
        MPI_Type_create_subarray(2, sizes, parts, starts, MPI_ORDER_FORTRAN, MPI_DOUBLE, &type);
        view(0, MPI_DOUBLE, type);
    } else if (is(how, "indexed")) {
        int lengths[3] = {2, 1, 3}, places[3] = {0, 5, 10};
        MPI_Type_indexed(3, lengths, places, MPI_INT, &inner);
        MPI_Type_create_resized(inner, 0, 100, &type);
        view(rank * 10000, MPI_INT, type);
    } else if (is(how, "struct")) {
        int lengths[2] = {1, 3};
        MPI_Aint places[2] = {16, 64};
        MPI_Datatype types[2] = {MPI_DOUBLE, MPI_INT};
        MPI_Type_create_struct(2, lengths, places, types, &inner);
        MPI_Type_create_resized(inner, 0, 128, &type);
        view(rank * 10000, MPI_BYTE, type);
    } else if (is(how, "darray")) {
        int whole[2] = {8, 8}, kinds[2] = {MPI_DISTRIBUTE_BLOCK, MPI_DISTRIBUTE_BLOCK};
        int lengths[2] = {MPI_DISTRIBUTE_DFLT_DARG, MPI_DISTRIBUTE_DFLT_DARG}, grid[2] = {1, ranks};
        MPI_Type_create_darray(ranks, rank, 2, whole, kinds, lengths, grid, MPI_ORDER_C, MPI_INT, &type);
        view(0, MPI_INT, type);
    } else if (is(how, "million")) {
        /* A column of a matrix: half a million blocks of one byte, 2 apart. */
        MPI_Type_vector(500000, 1, 2, MPI_BYTE, &type);
        view(rank, MPI_BYTE, type);
    }
    MPI_File_read_all(file, data, 4000, MPI_BYTE, MPI_STATUS_IGNORE);
    /* One more read from the pointer's position. */
    MPI_File_read(file, data, 400, MPI_BYTE, MPI_STATUS_IGNORE);
    /* The read has more pieces than are reported singly. */
    if (is(how, "million"))
        MPI_File_read(file, data, 5000, MPI_BYTE, MPI_STATUS_IGNORE);
}

int main(int argc, char **argv) {
    MPI_Status status;
    MPI_Request request;
    const char *family = argv[1];
    int writes = strncmp(family, "write", 5) == 0 || strncmp(family, "iwrite", 6) == 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (MPI_File_open(MPI_COMM_WORLD, argv[2], writes ? MPI_MODE_RDWR : MPI_MODE_RDONLY, MPI_INFO_NULL, &file) != MPI_SUCCESS)
        MPI_Abort(MPI_COMM_WORLD, 3);
    if (strncmp(family, "view_", 5) == 0) {
        by_view(family + 5);
        MPI_File_close(&file);
        MPI_Finalize();
        return 0;
    }
    if (strstr(family, "end_of_file")) {
        /* The file ends 100 bytes after the start of this read, and before the start of the next one. */
        MPI_File_read_at(file, (1 << 20) - 100, data, BLOCK, MPI_BYTE, &status);
        if (is(family, "iread_end_of_file"))
            MPI_File_iread_at(file, (1 << 20) - 100, data, BLOCK, MPI_BYTE, &request), MPI_Wait(&request, &status);
        MPI_File_read_at(file, 1 << 20, data, BLOCK, MPI_BYTE, &status);
        MPI_File_close(&file);
        MPI_Finalize();
        return 0;
    }
    /* Each rank's individual pointer begins at its own part. */
    MPI_File_seek(file, (MPI_Offset)rank * ROUNDS * BLOCK, MPI_SEEK_SET);
    for (int round = 0; round < ROUNDS; round++) {
        MPI_Offset at = mine(round);
        if (is(family, "read_at"))
            MPI_File_read_at(file, at, data, BLOCK, MPI_BYTE, &status);
        else if (is(family, "read_at_all"))
            MPI_File_read_at_all(file, at, data, BLOCK / 4, MPI_INT, MPI_STATUS_IGNORE);
        else if (is(family, "iread_at"))
            MPI_File_iread_at(file, at, data, BLOCK, MPI_BYTE, &request), MPI_Wait(&request, &status);
        else if (is(family, "iread_at_all"))
            MPI_File_iread_at_all(file, at, data, BLOCK, MPI_BYTE, &request), MPI_Wait(&request, &status);
        else if (is(family, "read_at_all_begin"))
            MPI_File_read_at_all_begin(file, at, data, BLOCK, MPI_BYTE), MPI_File_read_at_all_end(file, data, &status);
        else if (is(family, "read"))
            MPI_File_read(file, data, BLOCK, MPI_BYTE, &status);
        else if (is(family, "read_all"))
            MPI_File_read_all(file, data, BLOCK, MPI_BYTE, MPI_STATUS_IGNORE);
        else if (is(family, "iread"))
            MPI_File_iread(file, data, BLOCK, MPI_BYTE, &request), MPI_Wait(&request, &status);
        else if (is(family, "iread_all"))
            MPI_File_iread_all(file, data, BLOCK, MPI_BYTE, &request), MPI_Wait(&request, &status);
        else if (is(family, "read_all_begin"))
            MPI_File_read_all_begin(file, data, BLOCK, MPI_BYTE), MPI_File_read_all_end(file, data, MPI_STATUS_IGNORE);
        else if (is(family, "read_shared"))
            MPI_File_read_shared(file, data, BLOCK, MPI_BYTE, &status);
        else if (is(family, "read_ordered"))
            MPI_File_read_ordered(file, data, BLOCK, MPI_BYTE, &status);
        else if (is(family, "read_ordered_begin"))
            MPI_File_read_ordered_begin(file, data, BLOCK, MPI_BYTE), MPI_File_read_ordered_end(file, data, &status);
        else if (is(family, "write_at"))
            MPI_File_write_at(file, at, data, BLOCK, MPI_BYTE, &status);
        else if (is(family, "write_at_all"))
            MPI_File_write_at_all(file, at, data, BLOCK, MPI_BYTE, MPI_STATUS_IGNORE);
        else if (is(family, "iwrite_at"))
            MPI_File_iwrite_at(file, at, data, BLOCK, MPI_BYTE, &request), MPI_Wait(&request, &status);
        else if (is(family, "write_at_all_begin"))
            MPI_File_write_at_all_begin(file, at, data, BLOCK, MPI_BYTE), MPI_File_write_at_all_end(file, data, &status);
        else if (is(family, "write"))
            MPI_File_write(file, data, BLOCK, MPI_BYTE, &status);
        else if (is(family, "write_all"))
            MPI_File_write_all(file, data, BLOCK, MPI_BYTE, &status);
        else if (is(family, "iwrite"))
            MPI_File_iwrite(file, data, BLOCK, MPI_BYTE, &request), MPI_Wait(&request, &status);
        else if (is(family, "write_all_begin"))
            MPI_File_write_all_begin(file, data, BLOCK, MPI_BYTE), MPI_File_write_all_end(file, data, &status);
        else if (is(family, "write_ordered"))
            MPI_File_write_ordered(file, data, BLOCK, MPI_BYTE, &status);
        else {
            fprintf(stderr, "no family %s\n", family);
            MPI_Abort(MPI_COMM_WORLD, 4);
        }
    }
    MPI_File_close(&file);
    MPI_Finalize();
    return 0;
}
