/* Reads the file in argv[2] in the way that argv[1] names, and prints the result of each read: the bytes by its status, a sum of the
 * bytes in memory, and the file pointer. With MARKED in the environment each bit read is inverted before the sum. */
#define _GNU_SOURCE
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { MIB = 1 << 20, PAGE = 65536, BLOCK = 12345 };

static int rank, ranks, marked;
static MPI_File file;
static unsigned char data[4 * MIB];

static void say(const char *name, MPI_Status *status) {
    MPI_Count bytes = -1;
    MPI_Offset at = -1;
    unsigned long sum = 0;
    if (status)
        MPI_Get_elements_x(status, MPI_BYTE, &bytes);
    MPI_File_get_position(file, &at);
    for (size_t one = 0; one < sizeof data; one++)
        sum = sum * 31 + (data[one] == 0xaa ? 0xaa : (unsigned char)(data[one] ^ marked));
    printf("%d %s %lld %lld %lx\n", rank, name, (long long)bytes, (long long)at, sum);
    /* No byte of the file is 0xaa or its complement, so unread bytes can be distinguished from read ones. */
    memset(data, 0xaa, sizeof data);
}

/* This rank's 300 bytes of every 1300. */
static void view(void) {
    MPI_Datatype blocks, whole;
    MPI_Type_vector(40, 300, 1300, MPI_BYTE, &blocks);
    MPI_Type_create_resized(blocks, 0, 40 * 1300, &whole);
    MPI_Type_commit(&whole);
    MPI_File_set_view(file, rank * 300, MPI_BYTE, whole, "native", MPI_INFO_NULL);
    MPI_Type_free(&blocks);
    MPI_Type_free(&whole);
}

/* Every kind of read, blocking and non-blocking. */
static void reads(void) {
    MPI_Status status;
    MPI_Request request;
    MPI_Datatype memory;
    MPI_Offset mine = (MPI_Offset)rank * 5 * PAGE + 777;
    MPI_File_read_at(file, mine, data, BLOCK, MPI_BYTE, &status), say("read_at", &status);
    MPI_File_read_at_all(file, mine, data, 3 * PAGE, MPI_BYTE, &status), say("read_at_all", &status);
    MPI_File_seek(file, mine, MPI_SEEK_SET);
    MPI_File_read(file, data, BLOCK / 4, MPI_INT, &status), say("read", &status);
    MPI_File_read_all(file, data, BLOCK, MPI_BYTE, MPI_STATUS_IGNORE), say("read_all", NULL);
    MPI_File_read_all_begin(file, data, PAGE, MPI_BYTE), MPI_File_read_all_end(file, data, &status), say("split", &status);
    MPI_File_iread_at(file, mine, data, BLOCK, MPI_BYTE, &request), MPI_Wait(&request, &status), say("iread_at", &status);
    MPI_File_iread(file, data, BLOCK, MPI_BYTE, &request), MPI_Wait(&request, &status), say("iread", &status);
    MPI_File_read_ordered(file, data, BLOCK, MPI_BYTE, &status), say("ordered", &status);
    MPI_File_seek_shared(file, 0, MPI_SEEK_SET);
    /* The first rank to call would get the first block and the sums would differ, so only rank 0 calls. */
    if (rank == 0)
        MPI_File_read_shared(file, data, BLOCK, MPI_BYTE, &status), say("shared", &status);
    /* Memory with holes: 64 bytes of every 100. */
    MPI_Type_vector(1000, 64, 100, MPI_BYTE, &memory);
    MPI_Type_commit(&memory);
    MPI_File_read_at(file, mine, data, 2, memory, &status), say("holes", &status);
    /* A file with holes: read by data sieving, then in two phases. */
    view();
    MPI_File_read(file, data, 20000, MPI_BYTE, &status), say("view", &status);
    MPI_File_read_all(file, data, 20000, MPI_BYTE, &status), say("view_all", &status);
    MPI_File_read(file, data, 3, memory, &status), say("view_holes", &status);
    MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL);
}

/* Reads up to and beyond the end of the file: their last bytes come from the file system. */
static void ends(void) {
    MPI_Status status;
    MPI_Offset size;
    MPI_File_get_size(file, &size);
    MPI_File_read_at(file, size - 100, data, PAGE, MPI_BYTE, &status), say("last", &status);
    MPI_File_read_at(file, size - 3 * PAGE, data, 4 * PAGE, MPI_BYTE, &status), say("over", &status);
    MPI_File_read_at(file, size, data, PAGE, MPI_BYTE, &status), say("at_end", &status);
    MPI_File_read_at(file, size + PAGE, data, PAGE, MPI_BYTE, &status), say("behind", &status);
    MPI_File_read_at(file, 0, data, 0, MPI_BYTE, &status), say("nothing", &status);
}

/* Each rank reads the whole file. */
static void all(const char *name) {
    MPI_Status status;
    MPI_Barrier(MPI_COMM_WORLD);
    MPI_File_read_at(file, 0, data, sizeof data, MPI_BYTE, &status), say(name, &status);
    MPI_Barrier(MPI_COMM_WORLD);
}

static void put(int round, unsigned char *block, size_t len) { memset(block, 0x20 + round * 16 + rank, len); }

/* Each rank writes in every way; after each write all ranks read the whole file. */
static void writes(void) {
    static unsigned char block[3 * PAGE];
    char name[20];
    MPI_Status status;
    MPI_Request request;
    MPI_Offset mine = (MPI_Offset)rank * 4 * PAGE + 555;
    all("before");
    for (int round = 0; round < 12; round++) {
        put(round % 8, block, sizeof block);
        MPI_Offset at = mine + round * 1000;
        switch (round) {
        case 0: MPI_File_write_at(file, at, block, BLOCK, MPI_BYTE, &status); break;
        case 1: MPI_File_write_at_all(file, at, block, sizeof block, MPI_BYTE, &status); break;
        case 2: MPI_File_seek(file, at, MPI_SEEK_SET), MPI_File_write(file, block, BLOCK, MPI_BYTE, &status); break;
        case 3: MPI_File_write_all(file, block, BLOCK, MPI_BYTE, &status); break;
        case 4: MPI_File_iwrite_at(file, at, block, BLOCK, MPI_BYTE, &request), MPI_Wait(&request, &status); break;
        case 5: MPI_File_iwrite(file, block, BLOCK, MPI_BYTE, &request), MPI_Wait(&request, &status); break;
        case 6: MPI_File_write_at_all_begin(file, at, block, BLOCK, MPI_BYTE), MPI_File_write_at_all_end(file, block, &status); break;
        case 7: MPI_File_write_ordered(file, block, BLOCK, MPI_BYTE, &status); break;
        case 8:
            view();
            MPI_File_write_all(file, block, 20000, MPI_BYTE, &status);
            MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL);
            break;
        case 9:
            /* The ranks write one after the other, because data sieving writes back the bytes that it read around its own. */
            view();
            for (int turn = 0; turn < ranks; turn++, MPI_Barrier(MPI_COMM_WORLD))
                if (turn == rank)
                    MPI_File_write(file, block, 20000, MPI_BYTE, &status);
            MPI_File_set_view(file, 0, MPI_BYTE, MPI_BYTE, "native", MPI_INFO_NULL);
            break;
        case 10: MPI_File_set_size(file, 10 * PAGE + 4000); break;
        case 11: MPI_File_set_size(file, 12 * PAGE); break;
        }
        snprintf(name, sizeof name, "after_%d", round);
        all(name);
    }
}

/* Writes with holes: data sieving reads the bytes around them and writes them back. */
static void sieve(void) {
    static unsigned char block[20000];
    MPI_Status status;
    put(1, block, sizeof block);
    view();
    for (int turn = 0; turn < ranks; turn++, MPI_Barrier(MPI_COMM_WORLD))
        if (turn == rank)
            MPI_File_write(file, block, sizeof block, MPI_BYTE, &status);
    MPI_File_write_all(file, block, sizeof block, MPI_BYTE, &status);
}

/* One rank writes while the others read another place; then all ranks read the written bytes, with the syncs that MPI requires. */
static void at_once(void) {
    static unsigned char block[PAGE];
    MPI_Status status;
    unsigned long wrong = 0;
    all("before");
    for (int round = 0; round < 200; round++) {
        int writer = round % ranks;
        MPI_Offset at = (MPI_Offset)(round % 14) * PAGE + round * 17;
        if (rank == writer) {
            memset(block, 1 + round % 100, sizeof block);
            MPI_File_write_at(file, at, block, BLOCK, MPI_BYTE, &status);
        } else {
            MPI_File_read_at(file, (at + 2 * PAGE) % (14 * PAGE), data, BLOCK, MPI_BYTE, &status);
        }
        MPI_File_sync(file);
        MPI_Barrier(MPI_COMM_WORLD);
        MPI_File_sync(file);
        MPI_File_read_at(file, at, data, BLOCK, MPI_BYTE, &status);
        for (int one = 0; one < BLOCK; one++)
            wrong += data[one] != 1 + round % 100;
        MPI_Barrier(MPI_COMM_WORLD);
    }
    printf("%d wrong %lu\n", rank, wrong);
    memset(data, 0xaa, sizeof data);
    all("end");
}

/* Another program writes to the file. Its bytes are visible after a sync, and after the file is opened again. */
static void others(const char *path) {
    char command[5000];
    for (int round = 0; round < 2; round++) {
        all("before");
        if (rank == 0) {
            snprintf(command, sizeof command, "head -c 200000 /dev/zero | tr '\\0' '%c' | dd of=%s conv=notrunc bs=4096 seek=%d 2>/dev/null",
                     'a' + round, path, 3 + 40 * round);
            if (system(command) != 0)
                MPI_Abort(MPI_COMM_WORLD, 5);
        }
        MPI_Barrier(MPI_COMM_WORLD);
        if (round == 0) {
            MPI_File_sync(file);
        } else {
            MPI_File_close(&file);
            MPI_File_open(MPI_COMM_WORLD, path, MPI_MODE_RDWR, MPI_INFO_NULL, &file);
        }
        all("after");
    }
}

/* Each rank reads while the others wait in a call of MPI: their processes serve their pages meanwhile. */
static void in_turn(void) {
    MPI_Status status;
    MPI_Offset size;
    MPI_File_get_size(file, &size);
    for (int turn = -1; turn < ranks; turn++) {
        for (MPI_Offset page = 0; page < size / PAGE && (turn < 0 || turn == rank); page++) {
            MPI_File_read_at(file, page * PAGE + 100, data, 5000, MPI_BYTE, &status);
            if (turn >= 0)
                say("page", &status);
        }
        MPI_Barrier(MPI_COMM_WORLD);
    }
}

/* Reads into memory that is read-only, read-only in part, or not mapped. */
static void unwritable(void) {
    unsigned char *pages = mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    mprotect(pages + PAGE, PAGE, PROT_READ);
    munmap(pages + 3 * PAGE, PAGE);
    void *const places[] = {pages + PAGE, pages + PAGE - 1000, pages + 2 * PAGE - 1, pages + 3 * PAGE, pages + 3 * PAGE - 77, (void *)8};
    for (int one = 0; one < 6; one++) {
        MPI_Status status;
        int code = MPI_File_read_at(file, 200 + one, places[one], 5000, MPI_BYTE, &status), class;
        MPI_Error_class(code, &class);
        printf("%d unwritable %d: %d\n", rank, one, class);
    }
    memcpy(data, pages, PAGE), say("before", NULL);
    memcpy(data, pages + 2 * PAGE, PAGE), say("after", NULL);
}

int main(int argc, char **argv) {
    (void)argc;
    const char *name = argv[1];
    int reading = strcmp(name, "reads") == 0 || strcmp(name, "ends") == 0 || strcmp(name, "in_turn") == 0 || strcmp(name, "once") == 0;
    marked = getenv("MARKED") ? 0xff : 0;
    memset(data, 0xaa, sizeof data);
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    if (MPI_File_open(MPI_COMM_WORLD, argv[2], reading ? MPI_MODE_RDONLY : MPI_MODE_RDWR, MPI_INFO_NULL, &file) != MPI_SUCCESS)
        MPI_Abort(MPI_COMM_WORLD, 3);
    if (strcmp(name, "reads") == 0 || strcmp(name, "reads_writable") == 0)
        reads();
    else if (strcmp(name, "atomic") == 0)
        MPI_File_set_atomicity(file, 1), reads();
    else if (strcmp(name, "ends") == 0)
        ends();
    else if (strcmp(name, "writes") == 0)
        writes();
    else if (strcmp(name, "sieve") == 0)
        sieve();
    else if (strcmp(name, "at_once") == 0)
        at_once();
    else if (strcmp(name, "others") == 0)
        others(argv[2]);
    else if (strcmp(name, "in_turn") == 0)
        in_turn();
    else if (strcmp(name, "once") == 0)
        all("once");
    else if (strcmp(name, "unwritable") == 0)
        unwritable();
    /* The last rank exits without MPI_Finalize, or kills itself, with the file open. */
    else if (strcmp(name, "exit") == 0 && rank == ranks - 1)
        exit(7);
    else if (strcmp(name, "kill") == 0 && rank == ranks - 1)
        raise(9);
    else if (strcmp(name, "abort") == 0 && rank == ranks - 1)
        MPI_Abort(MPI_COMM_WORLD, 6);
    MPI_File_close(&file);
    MPI_Finalize();
    return 0;
}
