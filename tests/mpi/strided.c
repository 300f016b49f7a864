/* Reads every second 64 KiB of this rank's part of the file in argv[1], and prints a sum of the bytes. With a second argument each
 * rank's part is contiguous, otherwise the ranks' blocks alternate; with a third one every block is read. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>

enum { BLOCK = 65536 };

int main(int argc, char **argv) {
    static unsigned char data[BLOCK];
    unsigned long sum = 0;
    int rank, ranks, got;
    MPI_Offset size, count;
    MPI_File file;
    MPI_Status status;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (MPI_File_open(MPI_COMM_WORLD, argv[1], MPI_MODE_RDONLY, MPI_INFO_NULL, &file) != MPI_SUCCESS)
        MPI_Abort(MPI_COMM_WORLD, 3);
    MPI_File_get_size(file, &size);
    int step = argc > 3 ? 1 : 2;
    count = size / BLOCK / step / ranks;
    for (MPI_Offset block = 0; block < count; block++) {
        MPI_Offset place = argc > 2 ? rank * count + block : block * ranks + rank;
        MPI_File_read_at(file, place * step * BLOCK, data, BLOCK, MPI_BYTE, &status);
        MPI_Get_count(&status, MPI_BYTE, &got);
        for (int at = 0; at < got; at++)
            sum = sum * 31 + data[at];
    }
    MPI_File_close(&file);
    printf("rank %d: %lx\n", rank, sum);
    MPI_Finalize();
    return 0;
}
