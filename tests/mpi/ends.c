/* Ends in the way that argv[1] names: abort, exit (both by rank 1), none (MPI is not initialised), or in order. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char **argv) {
    int rank;
    const char *how = argv[1];
    if (strcmp(how, "none") == 0) {
        puts("no MPI");
        return 0;
    }
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (strcmp(how, "abort") == 0 && rank == 1)
        MPI_Abort(MPI_COMM_WORLD, 5);
    if (strcmp(how, "exit") == 0 && rank == 1)
        exit(7);
    if (strcmp(how, "well") == 0 && rank == 0)
        puts("hello");
    MPI_Finalize();
    return 0;
}
