/* As strided.c, in a program that uses only sessions of MPI 4: there is no MPI_COMM_WORLD.
   A rank that cannot open the file prints that and ends normally: if it failed, the launcher would kill
   the other ranks, and the launcher's status would depend on a race. */
#include <mpi.h>
#include <stdio.h>

enum { BLOCK = 65536 };

int main(int argc, char **argv) {
    static unsigned char data[BLOCK];
    unsigned long sum = 0;
    int rank, ranks, got, opened;
    MPI_Offset size = 0;
    MPI_File file;
    MPI_Status status;
    MPI_Session session;
    MPI_Group group;
    MPI_Comm comm;
    if (argc != 2 || MPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &session) != MPI_SUCCESS)
        return 2;
    MPI_Group_from_session_pset(session, "mpi://WORLD", &group);
    MPI_Comm_create_from_group(group, "org.foreread.test", MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, &comm);
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &ranks);
    opened = MPI_File_open(comm, argv[1], MPI_MODE_RDONLY, MPI_INFO_NULL, &file) == MPI_SUCCESS;
    if (opened)
        MPI_File_get_size(file, &size);
    for (MPI_Offset block = 0; block < size / BLOCK / 2 / ranks; block++) {
        MPI_File_read_at(file, (block * ranks + rank) * 2 * BLOCK, data, BLOCK, MPI_BYTE, &status);
        MPI_Get_count(&status, MPI_BYTE, &got);
        for (int at = 0; at < got; at++)
            sum = sum * 31 + data[at];
    }
    if (opened)
        MPI_File_close(&file);
    MPI_Comm_free(&comm);
    MPI_Group_free(&group);
    MPI_Session_finalize(&session);
    if (opened)
        printf("rank %d: %lx\n", rank, sum);
    else
        printf("rank %d: cannot open the file\n", rank);
    return 0;
}
