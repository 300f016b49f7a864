/* Changes the file in argv[1] in every way, argv[2] times each, at random places, which the number in argv[3] determines, and after
 * random reads. After each change all ranks read the file by MPI_File_read_at; for each way they print the number of bytes that
 * differed from the file's. */
#define _GNU_SOURCE
#include <aio.h>
#include <errno.h>
#include <fcntl.h>
#include <mpi.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SIZE = 1 << 20, MOST = 100000 };

static int rank, fd, source;
static MPI_File file;
static const char *path;
/* The bytes of the file. */
static char model[SIZE], data[SIZE];
/* The change: its bytes, offset and length. */
static char block[MOST + 1];
static off_t at;
static size_t len;

static void must(int right, const char *what) {
    if (!right) {
        fprintf(stderr, "%s: %s\n", what, strerror(errno));
        MPI_Abort(MPI_COMM_WORLD, 9);
    }
}

/* The same random numbers in all ranks. */
static uint64_t state;
static size_t below(size_t most) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (size_t)(state >> 33) % most;
}

static void with_pwrite(void) { must(pwrite(fd, block, len, at) == (ssize_t)len, "pwrite"); }
static void with_writev(void) {
    struct iovec parts[] = {{block, len / 2}, {block, len - len / 2}};
    must(lseek(fd, at, SEEK_SET) == at && writev(fd, parts, 2) == (ssize_t)len, "writev");
}
static void with_pwritev2(void) {
    struct iovec part = {block, len};
    must(pwritev2(fd, &part, 1, at, 0) == (ssize_t)len, "pwritev2");
}
static void with_stdio(int formatted) {
    FILE *stream = fopen(path, "r+");
    must(stream && fseeko(stream, at, SEEK_SET) == 0, "fseeko");
    if (formatted)
        must(fprintf(stream, "%.*s", (int)len, block) == (int)len, "fprintf");
    else
        must(fwrite(block, 1, len, stream) == len, "fwrite");
    must(fclose(stream) == 0, "fclose");
}
static void with_fwrite(void) { with_stdio(0); }
static void with_fprintf(void) { with_stdio(1); }
static void with_dprintf(void) {
    must(lseek(fd, at, SEEK_SET) == at && dprintf(fd, "%.*s", (int)len, block) == (int)len, "dprintf");
}
/* Writes the bytes to a file of their own. */
static void put_source(void) { must(ftruncate(source, 0) == 0 && pwrite(source, block, len, 0) == (ssize_t)len, "source"); }
static void with_copy_file_range(void) {
    off_t from = 0, to = at;
    put_source();
    for (size_t left = len; left > 0;) {
        ssize_t moved = copy_file_range(source, &from, fd, &to, left, 0);
        must(moved > 0, "copy_file_range");
        left -= (size_t)moved;
    }
}
static void with_sendfile(void) {
    off_t from = 0;
    put_source();
    must(lseek(fd, at, SEEK_SET) == at, "lseek");
    while ((size_t)from < len)
        must(sendfile(fd, source, &from, len - (size_t)from) > 0, "sendfile");
}
static void with_splice(void) {
    int ends[2];
    off_t from = 0, to = at;
    put_source();
    must(pipe(ends) == 0, "pipe");
    while ((size_t)from < len) {
        ssize_t held = splice(source, &from, ends[1], NULL, len - (size_t)from, 0);
        must(held > 0, "splice from");
        while (held > 0) {
            ssize_t moved = splice(ends[0], NULL, fd, &to, (size_t)held, 0);
            must(moved > 0, "splice to");
            held -= moved;
        }
    }
    close(ends[0]), close(ends[1]);
}
/* Cuts off the end of the file, which returns as zeros. */
static void with_truncate(void) { must(truncate(path, at) == 0 && truncate(path, SIZE) == 0, "truncate"); }
static void with_syscall_ftruncate(void) {
    must(syscall(SYS_ftruncate, fd, at) == 0 && syscall(SYS_ftruncate, fd, (off_t)SIZE) == 0, "SYS_ftruncate");
}
static void with_syscall(void) { must(syscall(SYS_pwrite64, fd, block, len, at) == (ssize_t)len, "SYS_pwrite64"); }
static void with_hole(void) {
    must(fallocate(fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, at, (off_t)len) == 0, "fallocate");
}
static void with_aio(void) {
    struct aiocb request = {.aio_fildes = fd, .aio_buf = block, .aio_nbytes = len, .aio_offset = at};
    const struct aiocb *all[] = {&request};
    must(aio_write(&request) == 0 && aio_suspend(all, 1, NULL) == 0 && aio_return(&request) == (ssize_t)len, "aio_write");
}
/* The pages are clean, so the kernel notices the first store to each. */
static void with_mapping(void) {
    must(fdatasync(fd) == 0, "fdatasync");
    char *map = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    must(map != MAP_FAILED, "mmap");
    memcpy(map + at, block, len);
    munmap(map, SIZE);
}
static void with_child(void) {
    int status = 1;
    pid_t child = fork();
    if (child == 0)
        _exit(syscall(SYS_pwrite64, fd, block, len, at) != (ssize_t)len);
    must(child > 0 && waitpid(child, &status, 0) == child && status == 0, "child");
}
static void with_program(void) {
    char command[5000];
    put_source();
    snprintf(command, sizeof command, "dd if=%s.source of=%s bs=1M oflag=seek_bytes seek=%ld conv=notrunc status=none", path, path, (long)at);
    must(system(command) == 0, "dd");
}
static void with_mpi(void) {
    MPI_Status status;
    must(MPI_File_write_at(file, at, block, (int)len, MPI_BYTE, &status) == MPI_SUCCESS, "MPI_File_write_at");
}

/* A way to change the file: its name and function; it is tried in one of this many rounds; whether it leaves zeros; whether they go
 * to the end. */
static const struct way {
    const char *name;
    void (*change)(void);
    int one_of, zeros, to_end;
} ways[] = {
    {"pwrite", with_pwrite, 1, 0, 0},
    {"writev", with_writev, 1, 0, 0},
    {"pwritev2", with_pwritev2, 1, 0, 0},
    {"fwrite", with_fwrite, 1, 0, 0},
    {"fprintf", with_fprintf, 1, 0, 0},
    {"dprintf", with_dprintf, 1, 0, 0},
    {"copy_file_range", with_copy_file_range, 1, 0, 0},
    {"sendfile", with_sendfile, 1, 0, 0},
    {"splice", with_splice, 1, 0, 0},
    {"truncate", with_truncate, 1, 1, 1},
    {"SYS_ftruncate", with_syscall_ftruncate, 1, 1, 1},
    {"SYS_pwrite64", with_syscall, 1, 0, 0},
    {"fallocate", with_hole, 1, 1, 0},
    {"aio_write", with_aio, 1, 0, 0},
    {"mmap", with_mapping, 10, 0, 0},
    {"child", with_child, 2, 0, 0},
    {"program", with_program, 25, 0, 0},
    {"MPI_File_write_at", with_mpi, 1, 0, 0},
};

/* Reads a part of the file; returns the number of wrong bytes. */
static size_t wrong_in(off_t from, size_t bytes) {
    MPI_Status status;
    size_t wrong = 0;
    memset(data, '#', bytes);
    MPI_File_read_at(file, from, data, (int)bytes, MPI_BYTE, &status);
    for (size_t one = 0; one < bytes; one++)
        wrong += data[one] != model[from + (off_t)one];
    return wrong;
}

static size_t wrong_anywhere(void) {
    size_t bytes = 1 + below(MOST);
    return wrong_in((off_t)below(SIZE - bytes), bytes);
}

int main(int argc, char **argv) {
    char name[5000];
    path = argv[1];
    int rounds = atoi(argv[2]);
    state = (uint64_t)atoi(argv[3]);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    fd = open(path, O_RDWR);
    snprintf(name, sizeof name, "%s.source", path);
    source = open(name, O_RDWR | O_CREAT, 0600);
    must(fd >= 0 && source >= 0 && pread(fd, model, SIZE, 0) == SIZE, path);
    must(MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_RDWR, MPI_INFO_NULL, &file) == MPI_SUCCESS, "MPI_File_open");
    /* Served from the cache, before any change; later reads may all be too early for pages that are filled again. */
    must(wrong_in(0, MOST) == 0, "the first read");
    MPI_Barrier(MPI_COMM_WORLD);
    for (size_t one = 0; one < sizeof ways / sizeof *ways; one++) {
        const struct way *way = &ways[one];
        size_t wrong = 0;
        for (int round = 0; round < rounds; round += way->one_of) {
            len = 1 + below(MOST);
            at = (off_t)below(SIZE - len);
            memset(block, 'a' + (int)below(26), len);
            size_t reads = below(3), pause = below(3) * 100;
            /* Makes changes of other processes visible, as MPI_File_sync does, but writes nothing to the device. */
            MPI_File_set_atomicity(file, 0);
            for (size_t read = 0; read < reads; read++)
                wrong += wrong_anywhere();
            MPI_Barrier(MPI_COMM_WORLD);
            if (rank == 0) {
                usleep((useconds_t)pause);
                way->change();
            }
            if (way->zeros)
                memset(model + at, 0, way->to_end ? (size_t)(SIZE - at) : len);
            else
                memcpy(model + at, block, len);
            MPI_Barrier(MPI_COMM_WORLD);
            wrong += wrong_in(at, len);
            wrong += wrong_anywhere();
            MPI_Barrier(MPI_COMM_WORLD);
        }
        printf("%d %s wrong %zu\n", rank, way->name, wrong);
    }
    MPI_File_close(&file);
    MPI_Finalize();
    return 0;
}
