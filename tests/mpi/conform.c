/* Calls every function of the C library that the MPI libraries interpose, with good, null, closed, foreign, wrong and hostile
 * arguments, while the file in argv[1] is open by MPI-IO. Each call is made in a child of its own, which prints: the return value,
 * errno, the bytes written, the open descriptors and their cursors, and how the child ended. Two runs with equal output behaved the
 * same. */
#define _GNU_SOURCE
#include <aio.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <mpi.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* The descriptors of each child. */
enum { DATA = 100, BOTH, WRITE_ONLY, APPEND, PIPE_OUT, PIPE_IN, DIRECTORY, NOTHING, PATH_ONLY, CLOSED = 120 };
static const int FDS[] = {DATA, BOTH, WRITE_ONLY, APPEND, PIPE_OUT, PIPE_IN, DIRECTORY, NOTHING, PATH_ONLY, CLOSED, -1, 70000, INT_MAX, INT_MIN};
static off_t size; /* Of the file. */

static const char *data_path;
static bool is_mpis[DATA]; /* Descriptors that are there before. */
static char buffer[256];
static char *edge, *read_only; /* The last byte before an unmapped page, and a page that cannot be written to. */
static struct iovec parts[2];
static struct aiocb block;
static struct aiocb64 block64;

static long need(long value) {
    if (value == -1) {
        fprintf(stderr, "%s\n", strerror(errno));
        _exit(99);
    }
    return value;
}

static void put(int fd, int as) {
    need(dup2(fd, as));
    close(fd);
}

static void surroundings(void) {
    int pair[2];
    memset(buffer, 0xaa, sizeof buffer);
    for (int fd = 3; fd < DATA; fd++)
        is_mpis[fd] = fcntl(fd, F_GETFD) >= 0;
    parts[0] = (struct iovec){buffer, 10};
    parts[1] = (struct iovec){buffer + 20, 30};
    put(need(open(data_path, O_RDONLY)), DATA);
    put(need(open(data_path, O_RDWR)), BOTH);
    put(need(open(data_path, O_WRONLY)), WRITE_ONLY);
    put(need(open(data_path, O_WRONLY | O_APPEND)), APPEND);
    need(pipe2(pair, O_NONBLOCK));
    put(pair[0], PIPE_OUT), put(pair[1], PIPE_IN);
    put(need(open(".", O_RDONLY | O_DIRECTORY)), DIRECTORY);
    put(need(open("/dev/null", O_RDWR)), NOTHING);
    put(need(open(data_path, O_PATH)), PATH_ONLY);
    /* By calls that no library intercepts: the file keeps its length and its first bytes. */
    need(syscall(SYS_ftruncate, BOTH, (long)size));
    need(syscall(SYS_pwrite64, BOTH, "the first bytes", 15L, 0L));
}

static unsigned sum(void) {
    unsigned sum = 0;
    for (size_t i = 0; i < sizeof buffer; i++)
        sum = sum * 31 + (unsigned char)buffer[i];
    return sum;
}

/* Prints by raw system calls. */
static void say(const char *format, ...) {
    char line[1024];
    va_list list;
    va_start(list, format);
    int len = vsnprintf(line, sizeof line, format, list);
    va_end(list);
    syscall(SYS_write, 1, line, (size_t)len);
}

static void descriptors(void) {
    say(" [");
    for (int fd = 3; fd < DATA; fd++)
        if (is_mpis[fd] != (fcntl(fd, F_GETFD) >= 0))
            say("%d:%s ", fd, is_mpis[fd] ? "gone" : "new");
    for (int fd = DATA; fd < 130; fd++) {
        struct stat stat;
        if (fstat(fd, &stat) == 0)
            say("%d:%o:%ld:%ld ", fd, stat.st_mode & S_IFMT, (long)syscall(SYS_fcntl, fd, F_GETFL, 0),
                S_ISREG(stat.st_mode) ? (long)syscall(SYS_lseek, fd, 0L, SEEK_CUR) : 0L);
    }
    say("]");
}

static int number;

#define TRY(label, call)                                                                                                        \
    do {                                                                                                                        \
        say("%d %s %d", number++, label, fd);                                                                                   \
        pid_t child = need(fork());                                                                                             \
        if (child == 0) {                                                                                                       \
            surroundings();                                                                                                     \
            errno = 12345;                                                                                                      \
            long result = (long)(call);                                                                                         \
            int error = errno;                                                                                                  \
            struct stat stat;                                                                                                   \
            fstat(BOTH, &stat);                                                                                                 \
            say(" = %ld errno %d wrote %x size %ld", result, error, sum(), (long)stat.st_size);                                 \
            descriptors();                                                                                                      \
            syscall(SYS_exit_group, 0);                                                                                         \
        }                                                                                                                       \
        int status;                                                                                                             \
        need(waitpid(child, &status, 0));                                                                                       \
        say(" ended %x\n", status);                                                                                             \
    } while (0)

/* Makes an asynchronous call and waits for its end: its result, and the value of aio_error(3). */
#define AIO(start, fail, end, block, fd_, to, len, at)                                                                          \
    ({                                                                                                                          \
        memset(&block, 0, sizeof block);                                                                                        \
        block.aio_fildes = fd_, block.aio_buf = to, block.aio_nbytes = len, block.aio_offset = at;                              \
        block.aio_sigevent.sigev_notify = SIGEV_NONE;                                                                           \
        int begun = start(&block), error;                                                                                       \
        while ((error = fail(&block)) == EINPROGRESS)                                                                           \
            usleep(100);                                                                                                        \
        (long)begun * 1000000 + error * 1000L + (begun == 0 ? end(&block) : 0);                                                 \
    })

static void calls(void) {
    char *const places[] = {buffer, NULL, (char *)8, read_only, edge};
    const size_t lengths[] = {0, 1, 200, SIZE_MAX};
    const off_t offsets[] = {0, 7, size - 3, -1, LONG_MIN};
    struct iovec *const lists[] = {parts, NULL, (struct iovec *)8, (struct iovec *)edge};
    const int counts[] = {2, 0, -1, 1025};
    for (size_t f = 0; f < COUNT(FDS); f++) {
        int fd = FDS[f];
        for (size_t p = 0; p < COUNT(places); p++)
            for (size_t l = 0; l < COUNT(lengths); l++) {
                size_t len = lengths[l];
                if (len > sizeof buffer && places[p] == buffer)
                    continue;
                off_t at = offsets[(p + l + f) % COUNT(offsets)];
                TRY("pread", pread(fd, places[p], len, at));
                TRY("pread64", pread64(fd, places[p], len, at));
                TRY("write", write(fd, places[p], len));
                TRY("pwrite", pwrite(fd, places[p], len, at));
                TRY("pwrite64", pwrite64(fd, places[p], len, at));
                if (p == 0 || l == 2) {
                    TRY("aio_read", AIO(aio_read, aio_error, aio_return, block, fd, places[p], len, at));
                    TRY("aio_read64", AIO(aio_read64, aio_error64, aio_return64, block64, fd, places[p], len, at));
                    TRY("aio_write", AIO(aio_write, aio_error, aio_return, block, fd, places[p], len, at));
                    TRY("aio_write64", AIO(aio_write64, aio_error64, aio_return64, block64, fd, places[p], len, at));
                }
            }
        for (size_t p = 0; p < COUNT(lists); p++)
            for (size_t c = 0; c < COUNT(counts); c++) {
                if (counts[c] == 1025 && lists[p] == parts)
                    continue;
                off_t at = offsets[(p + c) % COUNT(offsets)];
                TRY("writev", writev(fd, lists[p], counts[c]));
                TRY("preadv", preadv(fd, lists[p], counts[c], at));
                TRY("preadv64", preadv64(fd, lists[p], counts[c], at));
                TRY("pwritev", pwritev(fd, lists[p], counts[c], at));
                TRY("pwritev64", pwritev64(fd, lists[p], counts[c], at));
            }
        for (size_t o = 0; o < COUNT(offsets); o++) {
            TRY("ftruncate", ftruncate(fd, offsets[o]));
            TRY("ftruncate64", ftruncate64(fd, offsets[o]));
            TRY("fallocate", fallocate(fd, 0, offsets[o], 100));
            TRY("fallocate64", fallocate64(fd, FALLOC_FL_KEEP_SIZE | FALLOC_FL_PUNCH_HOLE, offsets[o], 4096));
            TRY("fallocate wrong", fallocate(fd, 0x7fffffff, offsets[o], -1));
        }
    }
    int fd = DATA;
    TRY("aio_return null", aio_return(NULL));
    TRY("aio_return64 hostile", aio_return64((struct aiocb64 *)8));
    TRY("aio_read null", aio_read(NULL));
    TRY("aio_read64 hostile", aio_read64((struct aiocb64 *)8));
}

int main(int argc, char **argv) {
    MPI_File file;
    MPI_Init(&argc, &argv);
    data_path = argv[argc - 1];
    char *pages = mmap(NULL, 3 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    /* No other mapping will be placed here. */
    need(mprotect(pages + 4096, 4096, PROT_NONE));
    edge = pages + 4095;
    read_only = pages + 2 * 4096;
    need(mprotect(read_only, 4096, PROT_READ));
    signal(SIGPIPE, SIG_IGN);
    /* MPI may have installed a handler that prints. */
    signal(SIGSEGV, SIG_DFL);
    signal(SIGBUS, SIG_DFL);
    struct stat stat_of_data;
    need(stat(data_path, &stat_of_data));
    size = stat_of_data.st_size;
    need(MPI_File_open(MPI_COMM_WORLD, data_path, MPI_MODE_RDWR, MPI_INFO_NULL, &file) == MPI_SUCCESS ? 0 : -1);
    MPI_File_read_at(file, 0, buffer, sizeof buffer, MPI_BYTE, MPI_STATUS_IGNORE);
    calls();
    MPI_File_close(&file);
    MPI_Finalize();
    return 0;
}
