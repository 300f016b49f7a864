/* A tool of the profiling interface: counts reads, and prints the count at the end. */
#include <mpi.h>
#include <stdio.h>

static int reads;

int MPI_File_read_at(MPI_File file, MPI_Offset at, void *data, int count, MPI_Datatype type, MPI_Status *status) {
    reads++;
    return PMPI_File_read_at(file, at, data, count, type, status);
}

int MPI_Finalize(void) {
    printf("%d reads\n", reads);
    fflush(stdout);
    return PMPI_Finalize();
}
