/* Reads hyperslabs of a two-dimensional dataset of an HDF5 file by parallel HDF5, each rank its columns, alternating collective and
 * independent reads. With "make" all ranks first write the file together. */
#include <hdf5.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROWS = 1024, COLUMNS = 1024, STEP = 64 };

int main(int argc, char **argv) {
    int rank, ranks;
    unsigned long sum = 0;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    int making = argc > 2 && !strcmp(argv[2], "make");
    hsize_t all[2] = {ROWS, COLUMNS}, count[2] = {STEP, COLUMNS / (hsize_t)ranks};
    unsigned *values = malloc(sizeof *values * count[0] * count[1]);
    hid_t access = H5Pcreate(H5P_FILE_ACCESS), transfer = H5Pcreate(H5P_DATASET_XFER);
    H5Pset_fapl_mpio(access, MPI_COMM_WORLD, MPI_INFO_NULL);
    hid_t file = making ? H5Fcreate(argv[1], H5F_ACC_TRUNC, H5P_DEFAULT, access) : H5Fopen(argv[1], H5F_ACC_RDONLY, access);
    hid_t space = H5Screate_simple(2, all, NULL), memory = H5Screate_simple(2, count, NULL);
    hid_t set = making ? H5Dcreate2(file, "field", H5T_NATIVE_UINT, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT)
                       : H5Dopen2(file, "field", H5P_DEFAULT);
    if (file < 0 || set < 0)
        MPI_Abort(MPI_COMM_WORLD, 3);
    for (hsize_t row = 0; row < ROWS; row += STEP) {
        hsize_t start[2] = {row, count[1] * (hsize_t)rank};
        H5Pset_dxpl_mpio(transfer, row / STEP % 2 ? H5FD_MPIO_INDEPENDENT : H5FD_MPIO_COLLECTIVE);
        H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, count, NULL);
        for (hsize_t at = 0; making && at < count[0] * count[1]; at++)
            values[at] = (unsigned)((row + at / count[1]) * 7919 + (start[1] + at % count[1]) * 31);
        herr_t code = making ? H5Dwrite(set, H5T_NATIVE_UINT, memory, space, transfer, values)
                             : H5Dread(set, H5T_NATIVE_UINT, memory, space, transfer, values);
        if (code < 0)
            MPI_Abort(MPI_COMM_WORLD, 4);
        for (hsize_t at = 0; at < count[0] * count[1]; at++)
            sum = sum * 31 + values[at];
    }
    H5Dclose(set);
    H5Fclose(file);
    printf("rank %d: %lx\n", rank, sum);
    MPI_Finalize();
    return 0;
}
