/* The parallel benchmarks of the paper on I/O signatures (sections VI and VII), written from its descriptions, and one
 * access a rank.
 *
 *     mpi CASE [-s STRIDE] [-b BLOCK] [-n COUNT] [-g GRID] [-r ROUNDS] [-c MICROSECONDS] [-o FIGURES] FILE
 *
 *     simple      PIO-Bench, simple strided: COUNT reads of BLOCK bytes, STRIDE apart; the ranks' blocks are neighbours
 *     nested      PIO-Bench, nested strided: two blocks, a block apart, of every STRIDE bytes, COUNT times
 *     segmented   PIO-Bench, segmented: COUNT blocks one after the other, from a part of the rank's own
 *     ior         IOR: the same, with larger blocks
 *     hacc        HACC-IO, restart: the variables of COUNT particles a rank, one after the other, in requests of BLOCK bytes;
 *                 of each variable the ranks' slices are neighbours
 *     btio        BTIO, full: COUNT steps, each a collective read of a field of GRID^3 cells of 5 numbers, of which a
 *                 rank has the blocks on a diagonal; the ranks are a square number
 *     tile        mpi-tile-io: one collective read of a tile of 100 x 100 elements of 1024 bytes
 *     single      one read of COUNT blocks of BLOCK bytes a rank
 *     flash-checkpoint, flash-centred, flash-corners
 *                 FLASH: the three files that it writes, collectively
 *
 * All but btio, tile and single go over their file ROUNDS times. A rank sleeps for MICROSECONDS after each access: its computing, which takes no processor from the other ranks. Ranks that
 * are done wait asleep for the others, since an MPI that waits busily would take the processors from those that read.
 *
 * Prints what was read or written and its checksum, the same in every run; and on standard error, or as a line "BYTES
 * SECONDS" in FIGURES, the seconds that the slowest rank has spent in these calls. */
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int rank, ranks;
static long long stride = 1 << 20, block = 4096, count = 64, grid = 102, rounds = 1, computing;
static const char *path;

/* What this rank has moved, what that came to, and how long it took. */
static unsigned long long moved, sum;
static double seconds;

static unsigned char *memory;
static size_t room;

static _Noreturn void fail(const char *what) {
    fprintf(stderr, "mpi: %s\n", what);
    MPI_Abort(MPI_COMM_WORLD, 1);
    abort();
}

static void need(int code, const char *what) {
    if (code != MPI_SUCCESS)
        fail(what);
}

/* Memory for an access. The pages are touched before any clock runs. */
static void *buffer(size_t bytes) {
    if (bytes > room) {
        free(memory);
        memory = malloc(bytes);
        if (!memory)
            fail("no memory");
        memset(memory, 1, bytes);
        room = bytes;
    }
    return memory;
}

/* Counts an access that began at `began`: the order of a rank's accesses matters. */
static void account(double began, MPI_Status *status) {
    int got;
    seconds += MPI_Wtime() - began;
    MPI_Get_count(status, MPI_BYTE, &got);
    for (int at = 0; at + 8 <= got; at += 8) {
        uint64_t word;
        memcpy(&word, memory + at, 8);
        sum = sum * 31 + word;
    }
    for (int at = got & ~7; at < got; at++)
        sum = sum * 31 + memory[at];
    moved += (unsigned long long)got;
    if (computing)
        usleep((useconds_t)computing);
}

static MPI_File open_file(int mode) {
    MPI_File file;
    need(MPI_File_open(MPI_COMM_WORLD, path, mode, MPI_INFO_NULL, &file), "cannot open the file");
    return file;
}

static void read_at(MPI_File file, long long at, long long bytes) {
    MPI_Status status;
    void *into = buffer((size_t)bytes);
    double began = MPI_Wtime();
    need(MPI_File_read_at(file, at, into, (int)bytes, MPI_BYTE, &status), "a read failed");
    account(began, &status);
}

/* Waits for all ranks without taking a processor. */
static void meet(void) {
    MPI_Request request;
    int done = 0;
    MPI_Ibarrier(MPI_COMM_WORLD, &request);
    while (!done) {
        MPI_Test(&request, &done, MPI_STATUS_IGNORE);
        if (!done)
            usleep(1000);
    }
}

static void close_file(MPI_File file) {
    meet();
    MPI_File_close(&file);
}

/* HACC's variables: xx, yy, zz, vx, vy, vz and phi, pid, mask. */
static void hacc(MPI_File file) {
    static const int sizes[] = {4, 4, 4, 4, 4, 4, 4, 8, 2};
    long long variable = 0;
    for (size_t v = 0; v < sizeof sizes / sizeof *sizes; v++) {
        long long slice = count * sizes[v];
        for (long long at = 0; at < slice; at += block)
            read_at(file, variable + rank * slice + at, slice - at < block ? slice - at : block);
        variable += ranks * slice;
    }
}

static void independent(const char *name) {
    MPI_File file = open_file(MPI_MODE_RDONLY);
    if (!strcmp(name, "single"))
        read_at(file, rank * block * count, block * count);
    for (long long round = 0; !strcmp(name, "hacc") && round < rounds; round++)
        hacc(file);
    for (long long turn = 0; strcmp(name, "single") && strcmp(name, "hacc") && turn < rounds * count; turn++) {
        long long i = turn % count;
        if (!strcmp(name, "simple")) {
            read_at(file, i * stride + rank * block, block);
        } else if (!strcmp(name, "nested")) {
            read_at(file, i * stride + rank * 4 * block, block);
            read_at(file, i * stride + rank * 4 * block + 2 * block, block);
        } else {
            read_at(file, (rank * count + i) * block, block);
        }
    }
    close_file(file);
}

/* A rank's part of a field: the cells of a diagonal multipartition, of which each process has one in each layer. */
static MPI_Datatype cells(long long *bytes) {
    int q = 1, sizes[4], lengths[4], starts[4], ones[64];
    MPI_Datatype parts[64], all;
    MPI_Aint zero[64] = {0};
    while (q * q < ranks)
        q++;
    if (q * q != ranks || q > 64)
        fail("btio runs as a square number of ranks");
    *bytes = 0;
    for (int d = 0; d < 3; d++)
        sizes[d] = (int)grid;
    sizes[3] = 5;
    for (int layer = 0; layer < q; layer++) {
        int cell[3] = {layer, (rank / q + layer) % q, (rank % q + layer) % q};
        for (int d = 0; d < 3; d++) {
            starts[d] = (int)(cell[d] * grid / q);
            lengths[d] = (int)((cell[d] + 1) * grid / q) - starts[d];
        }
        starts[3] = 0;
        lengths[3] = 5;
        MPI_Type_create_subarray(4, sizes, lengths, starts, MPI_ORDER_C, MPI_DOUBLE, &parts[layer]);
        *bytes += 8LL * lengths[0] * lengths[1] * lengths[2] * 5;
        ones[layer] = 1;
    }
    MPI_Type_create_struct(q, ones, zero, parts, &all);
    MPI_Type_commit(&all);
    for (int layer = 0; layer < q; layer++)
        MPI_Type_free(&parts[layer]);
    return all;
}

static void collective(MPI_Datatype view, long long bytes, long long steps) {
    MPI_File file = open_file(MPI_MODE_RDONLY);
    MPI_Status status;
    need(MPI_File_set_view(file, 0, MPI_BYTE, view, "native", MPI_INFO_NULL), "cannot set the view");
    void *into = buffer((size_t)bytes);
    for (long long step = 0; step < steps; step++) {
        double began = MPI_Wtime();
        need(MPI_File_read_at_all(file, step * bytes, into, (int)bytes, MPI_BYTE, &status), "a read failed");
        account(began, &status);
    }
    close_file(file);
    MPI_Type_free(&view);
}

static void tile(void) {
    enum { TILE = 100, ELEMENT = 1024 };
    int across = 1;
    MPI_Datatype view;
    while (across * across * 2 < ranks || ranks % across)
        across++;
    int sizes[3] = {TILE * (ranks / across), TILE * across, ELEMENT};
    int lengths[3] = {TILE, TILE, ELEMENT};
    int starts[3] = {TILE * (rank / across), TILE * (rank % across), 0};
    MPI_Type_create_subarray(3, sizes, lengths, starts, MPI_ORDER_C, MPI_BYTE, &view);
    MPI_Type_commit(&view);
    collective(view, (long long)TILE * TILE * ELEMENT, 1);
}

/* The numbers of each block of a variable follow those of the blocks before, rank by rank. A rank has 80 to 82 blocks. */
static void flash(long long header, int variables, long long block_bytes) {
    static const int more[4] = {0, 1, 2, 0};
    MPI_File file = open_file(MPI_MODE_CREATE | MPI_MODE_WRONLY);
    MPI_Status status;
    long long mine = 80 + more[rank % 4], before = 0, all = 0;
    for (int other = 0; other < ranks; other++) {
        before += other < rank ? 80 + more[other % 4] : 0;
        all += 80 + more[other % 4];
    }
    /* First the tree of blocks, of 60 bytes each, then the variables. */
    for (long long turn = 0; turn < rounds * (variables + 1); turn++) {
        int variable = (int)(turn % (variables + 1)) - 1;
        long long each = variable < 0 ? 60 : block_bytes;
        long long base = variable < 0 ? header : header + all * (60 + block_bytes * variable);
        unsigned char *from = buffer((size_t)(mine * each));
        for (long long at = 0; at < mine * each; at++)
            from[at] = (unsigned char)(at * 7 + variable + rank);
        double began = MPI_Wtime();
        need(MPI_File_write_at_all(file, base + before * each, from, (int)(mine * each), MPI_BYTE, &status),
             "a write failed");
        account(began, &status);
    }
    close_file(file);
}

static void run(const char *name) {
    long long bytes;
    if (!strcmp(name, "btio")) {
        MPI_Datatype view = cells(&bytes);
        collective(view, bytes, count);
    } else if (!strcmp(name, "tile")) {
        tile();
    } else if (!strcmp(name, "flash-checkpoint")) {
        flash(2048, 24, 8 * 8 * 8 * 8);
    } else if (!strcmp(name, "flash-centred")) {
        flash(2048, 4, 8 * 8 * 8 * 4);
    } else if (!strcmp(name, "flash-corners")) {
        flash(2048, 4, 9 * 9 * 9 * 4);
    } else if (!strcmp(name, "simple") || !strcmp(name, "nested") || !strcmp(name, "segmented") ||
               !strcmp(name, "ior") || !strcmp(name, "hacc") || !strcmp(name, "single")) {
        independent(name);
    } else {
        fail("there is no such case");
    }
}

int main(int argc, char **argv) {
    const char *figures = NULL;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (argc < 3)
        fail("usage: mpi CASE [-s STRIDE] [-b BLOCK] [-n COUNT] [-g GRID] [-r ROUNDS] [-c MICROSECONDS] [-o FIGURES] FILE");
    const char *name = argv[1];
    argv++;
    argc--;
    for (int option; (option = getopt(argc, argv, "s:b:n:g:r:c:o:")) != -1;) {
        if (option == 'o') {
            figures = optarg;
            continue;
        }
        if (option == '?')
            fail("there is no such option");
        long long number = atoll(optarg);
        if (number < (option == 'c' ? 0 : 1))
            fail("a number is positive");
        if (option == 's')
            stride = number;
        else if (option == 'b')
            block = number;
        else if (option == 'n')
            count = number;
        else if (option == 'g')
            grid = number;
        else if (option == 'r')
            rounds = number;
        else
            computing = number;
    }
    if (optind != argc - 1)
        fail("one file is needed");
    path = argv[optind];
    meet();
    run(name);
    unsigned long long mine[2] = {moved, sum * (2 * (unsigned long long)rank + 1)}, all[2] = {0, 0};
    double slowest = 0;
    MPI_Reduce(mine, all, 2, MPI_UNSIGNED_LONG_LONG, MPI_SUM, 0, MPI_COMM_WORLD);
    MPI_Reduce(&seconds, &slowest, 1, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
    if (rank == 0) {
        printf("%s, %d ranks: %llu bytes, checksum %016llx\n", name, ranks, all[0], all[1]);
        FILE *out = figures ? fopen(figures, "w") : stderr;
        if (!out)
            fail("cannot write the figures");
        if (figures)
            fprintf(out, "%llu %.9f\n", all[0], slowest);
        else
            fprintf(out, "%.6f s in these calls, by the slowest rank: %.2f MB/s\n", slowest, (double)all[0] / 1e6 / slowest);
        if (figures && fclose(out))
            fail("cannot write the figures");
    }
    MPI_Finalize();
    return 0;
}
