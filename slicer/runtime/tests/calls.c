/*
 * calls.c - prefetch_* and fetch_* calls give the results of the real calls.
 *
 * Random sequences of calls on the same file, side by side. Outside a prefetch process the calls announce nothing
 * and otherwise work as inside.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "check.h"

#define SIZE 10000
#define STEPS 200000

static uint64_t seed = 1;

static unsigned random_below(unsigned most) {
    seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407;
    return (unsigned)(seed >> 33) % most;
}

static const char *make_text(void) {
    const char *path = path_of("text");
    FILE *file = fopen(path, "w");
    for (int n = 0; n < SIZE; n++)
        fputc(random_below(9) == 0 ? '\n' : (int)('0' + random_below(10)), file);
    CHECK(fclose(file) == 0);
    return path;
}

/* The same result, and the same errno if it is an error. */
#define SAME(ours, real)                                                                           \
    do {                                                                                           \
        errno = 0;                                                                                 \
        long long real_ = (long long)(real);                                                       \
        int real_error_ = real_ < 0 ? errno : 0;                                                   \
        errno = 0;                                                                                 \
        long long ours_ = (long long)(ours);                                                       \
        int error_ = ours_ < 0 ? errno : 0;                                                        \
        if (ours_ != real_ || error_ != real_error_)                                               \
            FAIL("step %d: %s: %lld (%d), and not %lld (%d)", step, #ours, ours_, error_, real_,   \
                 real_error_);                                                                     \
    } while (0)

static off_t random_place(void) {
    return (off_t)random_below(SIZE + 3000) - 1000;
}

static void one_call(int step, int ours, int real) {
    char a[3000] = {0}, b[3000] = {0};
    size_t bytes = random_below(sizeof a);
    off_t place = random_place();
    int whence = (int)random_below(4);
    struct iovec to_a[] = {{a, bytes / 2}, {a + bytes / 2, bytes - bytes / 2}};
    struct iovec to_b[] = {{b, bytes / 2}, {b + bytes / 2, bytes - bytes / 2}};
    switch (random_below(10)) {
    case 0:
        SAME(prefetch_read(ours, bytes), read(real, b, bytes));
        break;
    case 1:
        SAME(prefetch_pread(ours, bytes, place), pread(real, b, bytes, place));
        break;
    case 2:
        SAME(prefetch_readv(ours, to_a, 2), readv(real, to_b, 2));
        break;
    case 3:
        SAME(prefetch_preadv(ours, to_a, 2, place), preadv(real, to_b, 2, place));
        break;
    case 4:
        SAME(fetch_read(ours, a, bytes), read(real, b, bytes));
        CHECK(memcmp(a, b, sizeof a) == 0);
        break;
    case 5:
        SAME(fetch_preadv(ours, to_a, 2, place), preadv(real, to_b, 2, place));
        CHECK(memcmp(a, b, sizeof a) == 0);
        break;
    default:
        SAME(prefetch_lseek(ours, place, whence), lseek(real, place, whence));
    }
}

static void test_descriptors(void) {
    const char *path = make_text();
    int real = open(path, O_RDONLY), ours = prefetch_open(path, O_RDONLY);
    int real_too = dup(real), ours_too = prefetch_dup(ours);
    CHECK(real_too >= 0 && ours_too >= 0);
    for (int step = 0; step < STEPS; step++)
        if (random_below(2) == 0)
            one_call(step, ours, real);
        else
            one_call(step, ours_too, real_too);
    int step = STEPS;
    SAME(prefetch_close(ours), close(real));
    SAME(prefetch_lseek(ours, 1, SEEK_SET), lseek(real, 1, SEEK_SET));
    one_call(step, ours_too, real_too);
}

/* The program's own code, running unchanged, opens, closes and reads files in between. */
static void test_unseen_opening(void) {
    const char *path = make_text();
    const char *other = make_file("other", 1);
    char text[100];
    int step = 0, real = open(path, O_RDONLY);
    for (; step < 100; step++) {
        int ours = open(path, O_RDONLY);
        CHECK(lseek(real, 0, SEEK_SET) == 0);
        for (int n = 0; n < 20; n++)
            one_call(step, ours, real);
        CHECK(prefetch_lseek(ours, 40, SEEK_SET) == 40 && lseek(real, 40, SEEK_SET) == 40);
        SAME(read(ours, text, sizeof text), read(real, text, sizeof text));
        SAME(prefetch_lseek(ours, 0, SEEK_CUR), lseek(real, 0, SEEK_CUR));
        CHECK(close(ours) == 0);
        CHECK(open(other, O_RDONLY) == ours);
        CHECK(prefetch_lseek(ours, 0, SEEK_END) == 4096);
        CHECK(close(ours) == 0);
        CHECK(prefetch_read(ours, 1) == -1 && errno == EBADF);
    }
    close(real);
}

static void one_stream_call(int step, FILE *ours, FILE *real) {
    char a[3000] = {0}, b[3000] = {0};
    size_t size = random_below(40) + 1, count = random_below(60);
    off_t place = random_place();
    int whence = (int)random_below(3), number_a = -1, number_b = -1;
    switch (random_below(14)) {
    case 0:
    case 1:
        SAME(prefetch_fread(ours, size, count), fread(b, size, count, real));
        break;
    case 2:
        SAME(fetch_fread(a, size, count, ours), fread(b, size, count, real));
        CHECK(memcmp(a, b, sizeof a) == 0);
        break;
    case 3:
        SAME(prefetch_getc(ours) == EOF, getc(real) == EOF);
        break;
    case 4:
        SAME(fetch_getc(ours), getc(real));
        break;
    case 5:
        SAME(fetch_fgets(a, (int)size + 1, ours) == NULL, fgets(b, (int)size + 1, real) == NULL);
        CHECK(strcmp(a, b) == 0);
        break;
    case 6:
        SAME(fetch_fscanf(ours, "%3d", &number_a), fscanf(real, "%3d", &number_b));
        CHECK(number_a == number_b);
        break;
    case 7: {
        int character = fetch_getc(ours);
        CHECK(character == getc(real));
        if (character != EOF)
            SAME(fetch_ungetc(character, ours), ungetc(character, real));
        break;
    }
    case 8:
        prefetch_rewind(ours);
        rewind(real);
        break;
    case 9: {
        fpos_t at, real_at;
        SAME(prefetch_fgetpos(ours, &at), fgetpos(real, &real_at));
        prefetch_fread(ours, 1, size);
        CHECK(fread(b, 1, size, real) <= size);
        SAME(prefetch_fsetpos(ours, &at), fsetpos(real, &real_at));
        break;
    }
    default:
        SAME(prefetch_fseek(ours, place, whence), fseek(real, place, whence));
    }
    SAME(prefetch_ftell(ours), ftell(real));
    SAME(prefetch_feof(ours) != 0, feof(real) != 0);
    SAME(prefetch_ferror(ours) != 0, ferror(real) != 0);
}

static void test_streams(void) {
    const char *path = make_text();
    FILE *real = fopen(path, "r"), *ours = prefetch_fopen(path, "r");
    CHECK(real != NULL && ours != NULL);
    for (int step = 0; step < STEPS; step++)
        one_stream_call(step, ours, real);
    CHECK(fclose(real) == 0 && prefetch_fclose(ours) == 0);
}

static void test_opening(void) {
    const char *path = make_text();
    int step = 0;
    SAME(prefetch_open(path_of("nothing"), O_RDONLY), open(path_of("nothing"), O_RDONLY));
    SAME(prefetch_open(path_of("."), O_RDWR), open(path_of("."), O_RDWR));
    SAME(prefetch_open(path, O_RDONLY | O_DIRECTORY), open(path, O_RDONLY | O_DIRECTORY));
    CHECK(symlink(path, path_of("link")) == 0);
    SAME(prefetch_open(path_of("link"), O_RDONLY | O_NOFOLLOW), open(path_of("link"), O_RDONLY | O_NOFOLLOW));
    CHECK(prefetch_fopen(path, "x") == NULL && errno == EINVAL);
    CHECK(prefetch_fopen(path_of("nothing"), "r") == NULL && errno == ENOENT);
    int folder = prefetch_open(path_of("."), O_RDONLY);
    int fd = prefetch_openat(folder, "text", O_RDWR);
    CHECK(prefetch_lseek(fd, 0, SEEK_END) == SIZE);
    struct stat facts;
    CHECK(fstat(fd, &facts) == 0 && facts.st_size == SIZE);
    CHECK((fcntl(fd, F_GETFL) & O_ACCMODE) == O_RDONLY);
    /* A file that the program is about to create is empty, and is not created. */
    int new = prefetch_open(path_of("new"), O_RDWR | O_CREAT, 0666);
    CHECK(new >= 0 && prefetch_read(new, 100) == 0 && access(path_of("new"), F_OK) != 0);
    CHECK(prefetch_creat(path, 0666) >= 0 && stat(path, &facts) == 0 && facts.st_size == SIZE);
    FILE *stream = prefetch_fopen(path, "w+");
    CHECK(stream != NULL && stat(path, &facts) == 0 && facts.st_size == SIZE);
    stream = prefetch_freopen(path, "r", stream);
    CHECK(stream != NULL && prefetch_fread(stream, 1, SIZE * 2) == SIZE && prefetch_feof(stream));
    CHECK(prefetch_fclose(stream) == 0);
    /* A growing file. */
    FILE *more = fopen(path, "a");
    CHECK(prefetch_lseek(fd, SIZE, SEEK_SET) == SIZE && prefetch_read(fd, 10) == 0);
    CHECK(fputs("abc", more) >= 0 && fclose(more) == 0);
    CHECK(prefetch_read(fd, 10) == 3);
    /* A descriptor under the number of another. */
    int other = prefetch_open(path, O_RDONLY);
    CHECK(prefetch_dup2(fd, other) == other && prefetch_lseek(other, 0, SEEK_CUR) == SIZE + 3);
    CHECK(prefetch_dup3(fd, fd, 0) == -1 && errno == EINVAL && prefetch_dup3(fd, 40, O_CLOEXEC) == 40);
    CHECK(prefetch_lseek(40, 0, SEEK_CUR) == SIZE + 3);
    /* A file that is not prefetched takes over the number: it no longer refers to the previous file. */
    int ends[2];
    CHECK(pipe(ends) == 0 && prefetch_dup2(ends[0], 40) == 40 && prefetch_lseek(40, 0, SEEK_CUR) == -1);
}

/* Files whose size is unrelated to their content. */
static void test_pseudo(void) {
    const char *path = "/proc/filesystems";
    int step = 0, fd = prefetch_open(path, O_RDONLY), real = open(path, O_RDONLY);
    FILE *stream = prefetch_fopen(path, "r"), *real_stream = fopen(path, "r");
    CHECK(fd >= 0 && real >= 0 && stream != NULL && real_stream != NULL);
    char a[100], b[100];
    ssize_t got;
    do {
        SAME(got = fetch_read(fd, a, 60), read(real, b, 60));
        CHECK(memcmp(a, b, (size_t)got) == 0);
        SAME(prefetch_lseek(fd, 0, SEEK_CUR), lseek(real, 0, SEEK_CUR));
    } while (got > 0 && ++step < 1000);
    do {
        SAME(fetch_fgets(a, 60, stream) == NULL, fgets(b, 60, real_stream) == NULL);
        CHECK(feof(real_stream) || strcmp(a, b) == 0);
    } while (!feof(real_stream) && ++step < 1000);
}

static void test_mappings(void) {
    const char *path = make_text();
    int fd = prefetch_open(path, O_RDONLY);
    char *mapped = prefetch_mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    CHECK(mapped != MAP_FAILED && prefetch_close(fd) == 0);
    char byte;
    int real = open(path, O_RDONLY);
    CHECK(pread(real, &byte, 1, 5000) == 1 && byte == mapped[5000]);
    prefetch_touch(mapped + 5000, 100);
    prefetch_touch(mapped - 1, 1);
    prefetch_load(mapped + 5000, 4);
    prefetch_load(mapped - 1, 1);
    prefetch_loads(mapped, mapped + 3, 1, 1000);
    prefetch_loads(mapped + 8000, mapped, 8, 2);
    prefetch_loads(mapped + SIZE - 1, mapped + SIZE + 5000, 1, 3);
    prefetch_loads(NULL, NULL, 1, 0);
    prefetch_call();
    mapped[5000] = 'x';
    char after;
    CHECK(pread(real, &after, 1, 5000) == 1 && after == byte);
    CHECK(prefetch_munmap(mapped, SIZE) == 0);
    CHECK(prefetch_mmap(NULL, SIZE, PROT_READ, MAP_SHARED, -1, 0) == MAP_FAILED && errno == EBADF);
}

static long faults(void) {
    struct rusage usage;
    CHECK(getrusage(RUSAGE_SELF, &usage) == 0);
    return usage.ru_minflt;
}

/* More blocks than fit into one step of the memory's growth. */
static void test_untouched(void) {
    enum { BLOCKS = 2000, BLOCK = 65000 };
    static unsigned char *blocks[BLOCKS];
    long before = faults();
    for (int n = 0; n < BLOCKS; n++) {
        blocks[n] = n % 2 ? prefetch_malloc(BLOCK) : prefetch_calloc(BLOCK / 8, 8);
        CHECK(blocks[n] != NULL && (uintptr_t)blocks[n] % 16 == 0);
    }
    CHECK(faults() - before < BLOCKS / 4);
    for (int n = 0; n < BLOCKS; n++)
        blocks[n][0] = blocks[n][BLOCK - 1] = (unsigned char)(n + 1);
    for (int n = 0; n < BLOCKS; n++) {
        CHECK(blocks[n][0] == (unsigned char)(n + 1) && blocks[n][1] == 0);
        prefetch_free(blocks[n]);
    }
    CHECK(prefetch_malloc(0) != prefetch_malloc(0));
    CHECK(prefetch_malloc(SIZE_MAX) == NULL && prefetch_calloc(SIZE_MAX / 2, 3) == NULL);
    prefetch_free(malloc(100));
    prefetch_free(NULL);
}

int main(int argc, char **argv) {
    const struct scenario scenarios[] = {{0}};
    const struct test tests[] = {
        {"calls on descriptors give the real ones' results", test_descriptors},
        {"what was opened unseen is read like the rest", test_unseen_opening},
        {"calls on streams do, skipping and reading mixed", test_streams},
        {"opening makes and changes nothing", test_opening},
        {"files that do not know their size are read to their end", test_pseudo},
        {"mappings are private", test_mappings},
        {"memory that nobody looks at is memory, and costs no page", test_untouched},
        {0},
    };
    return check_main(argc, argv, scenarios, tests);
}
