/* Reads every second 64 KiB of the file argv[1] with direct I/O, and prints a sum of the bytes. The file argv[2] is read through the
 * page cache before. MPI has no call for direct I/O, so O_DIRECT is set on MPI's own descriptor. The rank sleeps after each read. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BLOCK = 65536 };

static MPI_File open_file(const char *path) {
    MPI_File file;
    if (MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_RDONLY, MPI_INFO_NULL, &file) != MPI_SUCCESS)
        MPI_Abort(MPI_COMM_WORLD, 3);
    return file;
}

/* Sets O_DIRECT on all descriptors of the file in this process. */
static void read_past_the_page_cache(const char *path) {
    struct stat wanted, has;
    stat(path, &wanted);
    for (int fd = 3; fd < 1024; fd++)
        if (fstat(fd, &has) == 0 && has.st_dev == wanted.st_dev && has.st_ino == wanted.st_ino &&
            fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_DIRECT) != 0)
            MPI_Abort(MPI_COMM_WORLD, 4);
}

int main(int argc, char **argv) {
    unsigned char *data;
    unsigned long sum = 0;
    int rank, ranks;
    MPI_Offset size;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (posix_memalign((void **)&data, 4096, BLOCK) != 0)
        MPI_Abort(MPI_COMM_WORLD, 5);
    MPI_File file = open_file(argv[1]), other = open_file(argv[2]);
    read_past_the_page_cache(argv[1]);
    MPI_File_get_size(file, &size);
    for (MPI_Offset block = 0; block < size / BLOCK / 2 / ranks; block++) {
        MPI_Offset at = (block * ranks + rank) * 2 * BLOCK;
        if (block < 8) {
            MPI_File_read_at(other, at, data, BLOCK, MPI_BYTE, MPI_STATUS_IGNORE);
            sum += data[block];
        }
        MPI_File_read_at(file, at, data, BLOCK, MPI_BYTE, MPI_STATUS_IGNORE);
        for (int one = 0; one < BLOCK; one++)
            sum = sum * 31 + data[one];
        usleep(2000);
    }
    MPI_File_close(&file);
    MPI_File_close(&other);
    printf("rank %d: %lx\n", rank, sum);
    MPI_Finalize();
    return 0;
}
