/* Calls every function that the preload library interposes, with good, null, closed, foreign, wrong and hostile arguments. Each call
 * is made in a child of its own, in the same surroundings, which prints: the return value, errno, the bytes written, the open
 * descriptors, and how the child ended. Two runs with equal output behaved the same. */
#include "observe.h"
#include <aio.h>
#include <dirent.h>
#include <limits.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/mount.h>
#include <sys/personality.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <wordexp.h>
#include <grp.h>

extern char **environ;
/* Functions of the C library without a declaration. */
extern ssize_t __read_chk(int, void *, size_t, size_t);
extern ssize_t __pread_chk(int, void *, size_t, off_t, size_t);
extern ssize_t __pread64_chk(int, void *, size_t, off_t, size_t);
extern int __open_2(const char *, int), __open64_2(const char *, int);
extern int __openat_2(int, const char *, int), __openat64_2(int, const char *, int);
extern int capset(void *, const void *);
extern int __xstat(int, const char *, void *), __xstat64(int, const char *, void *);
extern int __lxstat(int, const char *, void *), __lxstat64(int, const char *, void *);
extern int __fxstatat(int, int, const char *, void *, int), __fxstatat64(int, int, const char *, void *, int);
extern ssize_t __readlink_chk(const char *, char *, size_t, size_t);
extern ssize_t __readlinkat_chk(int, const char *, char *, size_t, size_t);

/* The descriptors of each child. */
enum { DATA = 10, BOTH, WRITE_ONLY, PIPE_OUT, PIPE_IN, DIRECTORY, NOTHING, SOCKET, PATH_ONLY, MEMORY, TREE_END, CLOSED = 30 };
static const int FDS[] = {DATA, BOTH, WRITE_ONLY, PIPE_OUT, DIRECTORY, NOTHING, SOCKET, PATH_ONLY, MEMORY, CLOSED, -1, -100, 70000, INT32_MAX, INT32_MIN};
#define COUNT(array) (sizeof(array) / sizeof *(array))

static const char *data_path;
static char *edge;      /* The last byte before an unmapped page. */
static char *read_only; /* A page that cannot be written to. */
static char buffer[256];
static struct iovec parts[2];
static off_t offset_place;
static int word_place;

static void surroundings(void) {
    memset(buffer, 0xaa, sizeof buffer);
    parts[0] = (struct iovec){buffer, 10};
    parts[1] = (struct iovec){buffer + 20, 30};
    offset_place = 7;
    word_place = -7;
    int pair[2];
    check(dup2(check(open(data_path, O_RDONLY)), DATA));
    check(dup2(check(open("both", O_RDWR)), BOTH));
    check(dup2(check(open("both", O_WRONLY)), WRITE_ONLY));
    check(pipe(pair));
    check(dup2(pair[0], PIPE_OUT));
    check(dup2(pair[1], PIPE_IN));
    check(write(PIPE_IN, "hello", 5));
    check(fcntl(PIPE_OUT, F_SETFL, O_NONBLOCK));
    check(dup2(check(open(".", O_RDONLY | O_DIRECTORY)), DIRECTORY));
    check(dup2(check(open("/dev/null", O_RDWR)), NOTHING));
    check(dup2(check(socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK, 0)), SOCKET));
    check(dup2(check(open(data_path, O_PATH)), PATH_ONLY));
    check(dup2(check(memfd_create("m", 0)), MEMORY));
    check(write(MEMORY, "memory", 6));
    check(lseek(MEMORY, 0, SEEK_SET));
    for (int fd = 3; fd < DATA; fd++)
        close(fd);
    for (int fd = TREE_END; fd < 60; fd++)
        close(fd);
}

static unsigned sum(const void *at, size_t len) {
    unsigned sum = 0;
    for (size_t i = 0; i < len; i++)
        sum = sum * 31 + ((const unsigned char *)at)[i];
    return sum;
}

/* Prints by raw system calls, from memory of its own. */
static void say(const char *format, ...) {
    char line[1024];
    va_list list;
    va_start(list, format);
    int len = vsnprintf(line, sizeof line, format, list);
    va_end(list);
    syscall(SYS_write, 1, line, (size_t)len);
}

/* Prints the open descriptors: their types, flags and cursors. */
static void descriptors(void) {
    say(" [");
    for (int fd = 0; fd < 80; fd++) {
        struct stat stat;
        if (fstat(fd, &stat) != 0)
            continue;
        long flags = syscall(SYS_fcntl, fd, F_GETFD, 0), status = syscall(SYS_fcntl, fd, F_GETFL, 0);
        long at = fd > 2 && S_ISREG(stat.st_mode) ? syscall(SYS_lseek, fd, 0L, SEEK_CUR) : 0;
        say("%d:%o:%ld:%lx:%ld ", fd, stat.st_mode & S_IFMT, flags, status, at);
    }
    say("]");
}

static int number;

/* Makes one call in a child, which prints the result. */
#define TRY(label, type, call)                                                                  \
    do {                                                                                        \
        say("%d %s", number++, label);                                                          \
        pid_t child = check(fork());                                                            \
        if (child == 0) {                                                                       \
            surroundings();                                                                     \
            errno = 12345;                                                                      \
            long result = (long)(type)(call);                                                   \
            int error = errno;                                                                  \
            say(" = %ld errno %d wrote %x %ld %d", result, error, sum(buffer, sizeof buffer),   \
                (long)offset_place, word_place);                                                \
            descriptors();                                                                      \
            syscall(SYS_exit_group, 0);                                                         \
        }                                                                                       \
        int status;                                                                             \
        check(waitpid(child, &status, 0));                                                      \
        say(" ended %x\n", status);                                                             \
    } while (0)

/* For a returned pointer: true if it is not null. */
#define POINTER(call) ((call) != NULL)

static void reading(void) {
    void *const places[] = {buffer, NULL, (void *)8, read_only, edge};
    const size_t lengths[] = {0, 1, 100, 5000, SIZE_MAX, (size_t)SSIZE_MAX};
    const off_t offsets[] = {0, 7, 19990, 1 << 30, -1, INT64_MIN};
    for (size_t f = 0; f < COUNT(FDS); f++) {
        int fd = FDS[f];
        for (size_t p = 0; p < COUNT(places); p++)
            for (size_t l = 0; l < COUNT(lengths); l++) {
                /* Written bytes must fit into the memory. */
                size_t len = lengths[l] == 5000 && places[p] == buffer ? 200 : lengths[l];
                if (len > 200 && places[p] == buffer)
                    continue;
                TRY("read", ssize_t, read(fd, places[p], len));
                TRY("pread", ssize_t, pread(fd, places[p], len, offsets[(l + p) % COUNT(offsets)]));
                TRY("pread64", ssize_t, pread64(fd, places[p], len, offsets[(l + p + f) % COUNT(offsets)]));
            }
        TRY("__read_chk", ssize_t, __read_chk(fd, buffer, 100, 200));
        TRY("__read_chk null", ssize_t, __read_chk(fd, NULL, 100, 200));
        TRY("__pread_chk", ssize_t, __pread_chk(fd, buffer, 100, 7, 200));
        TRY("__pread64_chk", ssize_t, __pread64_chk(fd, (void *)8, 100, 7, 200));
        struct iovec *const lists[] = {parts, NULL, (struct iovec *)8, (struct iovec *)edge};
        const int counts[] = {2, 0, -1, 1025};
        for (size_t p = 0; p < COUNT(lists); p++)
            for (size_t c = 0; c < COUNT(counts); c++) {
                if (counts[c] == 1025 && lists[p] == parts)
                    continue;
                off_t at = offsets[(p + c) % COUNT(offsets)];
                TRY("readv", ssize_t, readv(fd, lists[p], counts[c]));
                TRY("preadv", ssize_t, preadv(fd, lists[p], counts[c], at));
                TRY("preadv64", ssize_t, preadv64(fd, lists[p], counts[c], at));
                TRY("preadv2", ssize_t, preadv2(fd, lists[p], counts[c], at, 0));
                TRY("preadv64v2", ssize_t, preadv64v2(fd, lists[p], counts[c], at, 0x7fffffff));
            }
        off_t *const pointers[] = {NULL, &offset_place, (off_t *)8, (off_t *)read_only};
        for (size_t p = 0; p < COUNT(pointers); p++) {
            TRY("sendfile", ssize_t, sendfile(WRITE_ONLY, fd, pointers[p], 100));
            TRY("sendfile64", ssize_t, sendfile64(fd, DATA, pointers[p], 100));
            TRY("copy_file_range", ssize_t, copy_file_range(fd, pointers[p], WRITE_ONLY, NULL, 100, 0));
            TRY("copy_file_range", ssize_t, copy_file_range(DATA, NULL, fd, pointers[p], 100, 1));
            TRY("splice", ssize_t, splice(fd, pointers[p], PIPE_IN, NULL, 100, SPLICE_F_NONBLOCK));
        }
        const int whences[] = {SEEK_SET, SEEK_CUR, SEEK_END, SEEK_DATA, SEEK_HOLE, 77, -1};
        for (size_t w = 0; w < COUNT(whences); w++) {
            TRY("lseek", off_t, lseek(fd, offsets[w % COUNT(offsets)], whences[w]));
            TRY("lseek64", off_t, lseek64(fd, 5, whences[w]));
        }
    }
    static struct aiocb block = {.aio_fildes = DATA, .aio_buf = buffer, .aio_nbytes = 50, .aio_offset = 9};
    TRY("aio_return", ssize_t, (aio_read(&block), aio_suspend((const struct aiocb *[]){&block}, 1, NULL), aio_return(&block)));
    static struct aiocb64 wrong = {.aio_fildes = CLOSED, .aio_buf = buffer, .aio_nbytes = 50};
    TRY("aio_return64", ssize_t, (aio_read64(&wrong), aio_suspend64((const struct aiocb64 *[]){&wrong}, 1, NULL), aio_return64(&wrong)));
    TRY("aio_return null", ssize_t, aio_return(NULL));
    TRY("aio_return64 hostile", ssize_t, aio_return64((struct aiocb64 *)8));
}

static void opening(void) {
    static char endless[5000];
    memset(endless, 'x', sizeof endless - 1);
    static char nested[4200];
    for (int i = 0; i < 2050; i++)
        memcpy(nested + 2 * i, "./", 2);
    *edge = 'x'; /* A path without an end. */
    const char *const paths[] = {NULL,   (char *)8, "",          "none",  data_path, "./data",          ".",   "..",          "sub/../data", "link",
                                 "loop", endless,   nested,      edge,    "pipe",    "/proc/self/fd/10", "/dev/null", "/dev/stdin", "data/x",    "/"};
    const int flags[] = {O_RDONLY, O_RDONLY | O_CLOEXEC, O_RDWR, O_WRONLY | O_NONBLOCK, O_DIRECTORY, O_PATH, O_RDONLY | O_NOFOLLOW, O_TMPFILE | O_RDWR, 0x7fffffff, -1, 3};
    for (size_t p = 0; p < COUNT(paths); p++)
        for (size_t f = 0; f < COUNT(flags); f++) {
            const char *path = paths[p];
            /* Without O_NONBLOCK the open of a pipe without a reader would wait. */
            int how = flags[f] | O_NONBLOCK;
            TRY("open", int, open(path, how, 0600));
            TRY("openat here", int, openat64(AT_FDCWD, path, how, 0600));
            TRY("openat directory", int, openat(DIRECTORY, path, how, 0600));
            TRY("openat data", int, openat(DATA, path, how, 0600));
            TRY("openat closed", int, openat(CLOSED, path, how, 0600));
            if (f > 3)
                continue;
            TRY("open64", int, open64(path, how, 0600));
            TRY("__open_2", int, __open_2(path, how));
            TRY("__open64_2", int, __open64_2(path, how));
            TRY("__openat_2", int, __openat_2(DIRECTORY, path, how));
            TRY("__openat64_2", int, __openat64_2(DIRECTORY, path, how));
        }
    TRY("open new", int, (unlink("new"), open("new", O_CREAT | O_EXCL | O_RDWR, 0640)));
    TRY("creat", int, creat("new", 0600));
    TRY("creat null", int, creat(NULL, 0600));
    TRY("creat64", int, creat64("none/x", 0600));
    TRY("open then read", ssize_t, read(open("data", O_RDONLY), buffer, 100));
    const char *const modes[] = {"r", "r+", "rb", "rm", "rem", "re", "", "z", "r,ccs=UTF-8", "r,ccs=none", endless, NULL, (char *)8};
    for (size_t p = 0; p < COUNT(paths); p++)
        for (size_t m = 0; m < COUNT(modes); m++) {
            if (paths[p] && paths[p] != (char *)8 && strcmp(paths[p], "pipe") == 0)
                continue;
            TRY("fopen", int, POINTER(fopen(paths[p], modes[m])));
            if (m % 3 == 0)
                TRY("fopen64", int, POINTER(fopen64(paths[p], modes[m])));
            TRY("freopen", int, POINTER(freopen(paths[p], modes[m], fopen("both", "r"))));
        }
    TRY("freopen64 none", int, POINTER(freopen64("data", "r", NULL)));
    TRY("fopen, fgets", int, POINTER(fgets(buffer, 50, fopen("data", "r"))));
    TRY("fopen rm, fgets", int, POINTER(fgets(buffer, 50, fopen("data", "rm"))));
    TRY("fclose file", int, fclose(fopen("data", "r")));
    TRY("fclose fdopen", int, fclose(fdopen(DATA, "r")));
    TRY("fclose closed", int, (close(DATA), fclose(fdopen(BOTH, "r"))));
    static char *memory;
    static size_t size;
    TRY("fclose memory", int, fclose(open_memstream(&memory, &size)));
    TRY("fclose fmemopen", int, fclose(fmemopen(buffer, 10, "r")));
    TRY("fclose read", int, ({ FILE *file = fopen("data", "r"); fgetc(file); fclose(file); }));
    TRY("closedir null", int, closedir(NULL));
    TRY("closedir", int, closedir(opendir(".")));
    TRY("closedir fdopendir", int, closedir(fdopendir(DIRECTORY)));
    for (size_t f = 0; f < COUNT(FDS); f++)
        TRY("fdopendir", int, POINTER(fdopendir(FDS[f])));
    TRY("openat dirfd", int, ({ DIR *here = opendir("."); int fd = openat(dirfd(here), "data", O_RDONLY); closedir(here); read(fd, buffer, 9); fd; }));
}

/* Buffer for times and inodes, which differ from run to run. */
static union { struct stat stat; struct statx statx; char bytes[512]; } answer;

/* The result of a call that finds a file: the file's type and rights. */
static long found(int outcome) { return outcome == 0 ? (long)answer.stat.st_mode : outcome; }
static long found_by_statx(int outcome) { return outcome == 0 ? (long)answer.statx.stx_mode : outcome; }

/* The path in the last bytes before an unmapped page, in memory without a terminating zero, where a result of that length is to be
 * written. */
static void *in_place(const char *path, size_t room) {
    memset(edge + 1 - room, 'x', room);
    return strcpy(edge + 1 - room, path);
}

static int only_data(const struct dirent *entry) { return strcmp(entry->d_name, "data") == 0; }

static void looking(void) {
    static char endless[5000];
    memset(endless, 'x', sizeof endless - 1);
    *edge = 'x';
    const char *const paths[] = {NULL, (char *)8, "", "none", data_path, "./data", ".", "..", "sub/../data", "link", "loop", endless,
                                 edge, "pipe", "/proc/self/fd/10", "/dev/null", "data/x", "sub/", "link/", "/"};
    void *const places[] = {&answer, NULL, (void *)8, read_only, edge};
    const int flags[] = {0, AT_SYMLINK_NOFOLLOW, AT_EMPTY_PATH, AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW, AT_NO_AUTOMOUNT, 0x7fffffff, -1};
    const int modes[] = {F_OK, R_OK, X_OK, 77, -1};
    for (size_t p = 0; p < COUNT(paths); p++) {
        const char *path = paths[p];
        for (size_t a = 0; a < COUNT(places); a++) {
            void *into = places[a];
            TRY("stat", long, found(stat(path, into)));
            TRY("stat64", long, found(stat64(path, into)));
            TRY("lstat", long, found(lstat(path, into)));
            TRY("lstat64", long, found(lstat64(path, into)));
            TRY("__xstat", long, found(__xstat(1, path, into)));
            TRY("__xstat64", long, found(__xstat64(1, path, into)));
            TRY("__lxstat", long, found(__lxstat(1, path, into)));
            TRY("__lxstat64 wrong", long, found(__lxstat64(77, path, into)));
        }
        for (size_t f = 0; f < COUNT(FDS); f++) {
            int base = f == 0 ? AT_FDCWD : FDS[f], flag = flags[f % COUNT(flags)];
            TRY("fstatat", long, found(fstatat(base, path, &answer.stat, flag)));
            TRY("fstatat64", long, found(fstatat64(base, path, (void *)&answer, flag)));
            TRY("__fxstatat", long, found(__fxstatat(1, base, path, &answer, flag)));
            TRY("__fxstatat64", long, found(__fxstatat64(1, base, path, places[f % COUNT(places)], flag)));
            TRY("statx", long, found_by_statx(statx(base, path, flag, STATX_BASIC_STATS, &answer.statx)));
            TRY("statx hostile", int, statx(base, path, flag, -1, places[1 + f % 4]));
            TRY("faccessat", int, faccessat(base, path, modes[f % COUNT(modes)], flag));
            TRY("readlinkat", ssize_t, readlinkat(base, path, buffer, 100));
            TRY("__readlinkat_chk", ssize_t, __readlinkat_chk(base, path, buffer, 100, 200));
            TRY("scandirat", int, ({ struct dirent **list; scandirat(base, path, &list, only_data, NULL); }));
            TRY("scandirat64", int, ({ struct dirent64 **list; scandirat64(base, path, &list, (void *)only_data, NULL); }));
        }
        for (size_t f = 0; f < COUNT(flags); f++) {
            TRY("fstatat directory", long, found(fstatat(DIRECTORY, path, &answer.stat, flags[f])));
            TRY("statx directory", long, found_by_statx(statx(DIRECTORY, path, flags[f], STATX_TYPE | STATX_MODE, &answer.statx)));
        }
        for (size_t m = 0; m < COUNT(modes); m++) {
            TRY("access", int, access(path, modes[m]));
            TRY("eaccess", int, eaccess(path, modes[m]));
            TRY("euidaccess", int, euidaccess(path, modes[m]));
        }
        TRY("readlink", ssize_t, readlink(path, buffer, 100));
        TRY("readlink short", ssize_t, readlink(path, buffer, 2));
        TRY("readlink nowhere", ssize_t, readlink(path, (char *)8, 100));
        TRY("readlink none", ssize_t, readlink(path, buffer, 0));
        TRY("__readlink_chk", ssize_t, __readlink_chk(path, buffer, 100, 200));
        TRY("opendir", int, POINTER(opendir(path)));
        TRY("opendir, openat", int, ({ DIR *one = opendir(path); one ? openat(dirfd(one), "data", O_RDONLY) : -1; }));
        TRY("scandir", int, ({ struct dirent **list; scandir(path, &list, only_data, alphasort); }));
        TRY("scandir64", int, ({ struct dirent64 **list; scandir64(path, &list, (void *)only_data, NULL); }));
        if (path && path != (char *)8 && path != edge && strlen(path) < 100) {
            size_t stat_room = sizeof answer.stat, statx_room = sizeof answer.statx;
            void *at;
            TRY("stat in place", int, ({ at = in_place(path, stat_room); stat(at, at); }));
            TRY("lstat in place", int, ({ at = in_place(path, stat_room); lstat(at, at); }));
            TRY("__xstat in place", int, ({ at = in_place(path, stat_room); __xstat(1, at, at); }));
            TRY("__lxstat64 in place", int, ({ at = in_place(path, stat_room); __lxstat64(1, at, at); }));
            TRY("fstatat in place", int, ({ at = in_place(path, stat_room); fstatat(AT_FDCWD, at, at, 0); }));
            TRY("fstatat in place, empty", int, ({ at = in_place(path, stat_room); fstatat(DIRECTORY, at, at, AT_EMPTY_PATH | AT_SYMLINK_NOFOLLOW); }));
            TRY("__fxstatat in place", int, ({ at = in_place(path, stat_room); __fxstatat(1, AT_FDCWD, at, at, AT_SYMLINK_NOFOLLOW); }));
            TRY("stat over its end", int, ({ at = in_place(path, stat_room + 3); stat(at, at + 3); }));
            TRY("statx in place", int, ({ at = in_place(path, statx_room); statx(AT_FDCWD, at, 0, STATX_BASIC_STATS, at); }));
            TRY("readlink in place", ssize_t, ({ at = in_place(path, 100); readlink(at, at, 100); }));
            TRY("readlink in place, full", ssize_t, ({ at = in_place(path, strlen(path) + 1); readlink(at, at, strlen(path) + 1); }));
            TRY("readlinkat over its end", ssize_t, ({ at = in_place(path, 104); readlinkat(DIRECTORY, at, at + 4, 100); }));
            TRY("__readlink_chk in place", ssize_t, ({ at = in_place(path, 100); __readlink_chk(at, at, 100, 100); }));
            TRY("stat raw in place", int, ({ at = in_place(path, stat_room); syscall(SYS_stat, at, at); }));
            TRY("newfstatat raw in place", int, ({ at = in_place(path, stat_room); syscall(SYS_newfstatat, AT_FDCWD, at, at, AT_SYMLINK_NOFOLLOW); }));
            TRY("readlink raw in place", int, ({ at = in_place(path, 5); syscall(SYS_readlink, at, at, 5L); }));
        }
        TRY("stat raw", long, found(syscall(SYS_stat, path, &answer)));
        TRY("lstat raw", long, found(syscall(SYS_lstat, path, &answer)));
        TRY("newfstatat raw", long, found(syscall(SYS_newfstatat, AT_FDCWD, path, &answer, 0)));
        TRY("statx raw", long, found_by_statx(syscall(SYS_statx, AT_FDCWD, path, 0, STATX_MODE, &answer)));
        TRY("access raw", int, syscall(SYS_access, path, R_OK));
        TRY("faccessat raw", int, syscall(SYS_faccessat, DIRECTORY, path, R_OK));
        TRY("readlink raw", int, syscall(SYS_readlink, path, buffer, 100L));
        TRY("readlinkat raw", int, syscall(SYS_readlinkat, DIRECTORY, path, buffer, 100L));
    }
    for (size_t f = 0; f < COUNT(FDS); f++)
        for (size_t a = 0; a < COUNT(places); a++) {
            size_t len = places[a] == &answer ? sizeof answer : 100;
            TRY("getdents64", int, getdents64(FDS[f], places[a], len) > 0);
            TRY("getdents64 raw", int, syscall(SYS_getdents64, FDS[f], places[a], len) > 0);
        }
    TRY("fchdir, stat", long, ({ fchdir(open("sub", O_RDONLY | O_DIRECTORY)); found(stat("../data", &answer.stat)); }));
    TRY("vfork, stat", long, ({ pid_t child = vfork(); if (child == 0) _exit(stat("data", &answer.stat)); waitpid(child, NULL, 0); found(0); }));
}

static void descriptors_and_directories(void) {
    const int others[] = {DATA, 40, CLOSED, -1, 70000, INT32_MAX};
    for (size_t f = 0; f < COUNT(FDS); f++) {
        int fd = FDS[f];
        TRY("close", int, close(fd));
        TRY("close twice", int, (close(fd), close(fd)));
        TRY("dup", int, dup(fd));
        TRY("fchdir", int, fchdir(fd));
        for (size_t o = 0; o < COUNT(others); o++) {
            TRY("dup2", int, dup2(fd, others[o]));
            TRY("dup3", int, dup3(fd, others[o], o % 2 ? O_CLOEXEC : 0));
            TRY("dup3 wrong", int, dup3(fd, others[o], 77));
            TRY("close_range", int, close_range(fd, others[o], 0));
        }
        const int commands[] = {F_DUPFD, F_DUPFD_CLOEXEC, F_GETFD, F_SETFD, F_GETFL, F_GETLK, F_SETLK, F_GETOWN, F_SETLEASE, F_GETLEASE, F_SETPIPE_SZ, F_ADD_SEALS, 12345, -1};
        const long arguments[] = {0, 40, -1, 8, (long)read_only};
        for (size_t c = 0; c < COUNT(commands); c++)
            for (size_t a = 0; a < COUNT(arguments); a++) {
                TRY("fcntl", int, fcntl(fd, commands[c], arguments[a]));
                if (a == 1)
                    TRY("fcntl64", int, fcntl64(fd, commands[c], arguments[a]));
            }
        TRY("posix_fadvise", int, posix_fadvise(fd, 0, 0, POSIX_FADV_RANDOM));
        TRY("posix_fadvise wrong", int, posix_fadvise(fd, -1, -1, 77));
        TRY("posix_fadvise64", int, posix_fadvise64(fd, 7, 100, POSIX_FADV_WILLNEED));
        TRY("fcntl lease", int, (close(DATA), close(PATH_ONLY), fcntl(fd, F_SETLEASE, F_RDLCK)));
    }
    TRY("close_range all", int, close_range(10, 20, CLOSE_RANGE_CLOEXEC));
    TRY("close_range backward", int, close_range(20, 10, 0));
    TRY("close_range unshare", int, close_range(12, ~0U, CLOSE_RANGE_UNSHARE));
    TRY("close_range wrong", int, close_range(12, 15, 0x7fffffff));
    TRY("closefrom", int, (closefrom(12), 0));
    TRY("closefrom negative", int, (closefrom(70000), 0));
    const char *const paths[] = {NULL, (char *)8, "", "none", "data", ".", "sub", "sub/..", "link", "/"};
    for (size_t p = 0; p < COUNT(paths); p++) {
        TRY("chdir", int, chdir(paths[p]));
        TRY("chdir, open", int, (chdir(paths[p]), open("data", O_RDONLY)));
        TRY("chdir, read", ssize_t, (chdir(paths[p]), read(open("data", O_RDONLY), buffer, 50)));
        if (p < 5)
            TRY("chroot", int, chroot(paths[p]));
    }
    TRY("read after dup", ssize_t, (dup2(DATA, 40), read(40, buffer, 10), close(40), read(DATA, buffer, 20)));
}

static void people_and_places(void) {
    TRY("setns", int, setns(CLOSED, 0));
    TRY("setns", int, setns(DATA, 0));
    TRY("unshare", int, unshare(0));
    TRY("unshare files", int, unshare(CLONE_FILES));
    TRY("unshare wrong", int, unshare(0x7f));
    TRY("mount", int, mount(NULL, NULL, NULL, 0, NULL));
    TRY("mount hostile", int, mount((char *)8, (char *)8, (char *)8, 0, (void *)8));
    TRY("umount", int, umount(NULL));
    TRY("umount2", int, umount2("none", 0));
    TRY("setuid", int, setuid(getuid()));
    TRY("setuid other", int, setuid(65534));
    TRY("seteuid", int, seteuid(65534));
    TRY("setreuid", int, setreuid(65534, 65534));
    TRY("setresuid", int, setresuid(65534, 65534, 65534));
    TRY("setresuid none", int, setresuid(-1, -1, -1));
    TRY("setgid", int, setgid(getgid()));
    TRY("setegid", int, setegid(65534));
    TRY("setregid", int, setregid(65534, -1));
    TRY("setresgid", int, setresgid(65534, 65534, 65534));
    TRY("setgroups", int, setgroups(0, NULL));
    TRY("setgroups hostile", int, setgroups(3, (gid_t *)8));
    TRY("initgroups", int, initgroups("nobody", 65534));
    TRY("capset", int, capset(NULL, NULL));
    TRY("capset hostile", int, capset((void *)8, (void *)8));
    static struct rlimit none, some = {1 << 30, RLIM_INFINITY};
    TRY("setrlimit", int, setrlimit(RLIMIT_CORE, &none));
    TRY("setrlimit memory", int, setrlimit(RLIMIT_DATA, &some));
    TRY("setrlimit hostile", int, setrlimit(RLIMIT_AS, (void *)8));
    TRY("setrlimit64", int, setrlimit64(77, (void *)&none));
    TRY("setrlimit64 hostile", int, setrlimit64(RLIMIT_AS, (void *)8));
    TRY("prlimit", int, prlimit(0, RLIMIT_AS, NULL, NULL));
    TRY("prlimit hostile", int, prlimit(0, RLIMIT_NOFILE, (void *)8, (void *)8));
    TRY("prlimit64", int, prlimit64(getpid(), RLIMIT_DATA, (void *)&some, NULL));
    TRY("prlimit64 nobody's", int, prlimit64(-1, RLIMIT_AS, NULL, NULL));
    TRY("setuid, open", int, (setresuid(65534, 65534, 65534), open("data", O_RDONLY)));
    for (int option = 0; option < 60; option++)
        if (option != PR_SET_MM && option != PR_SET_PTRACER && option != PR_GET_TIMERSLACK)
            TRY("prctl", int, prctl(option, 8L, 8L, 8L, 8L));
    TRY("prctl tsc", int, prctl(PR_SET_TSC, 77));
    TRY("prctl seccomp", int, prctl(PR_SET_SECCOMP, 77, 8));
    TRY("prctl seccomp filter", int, prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, 8L));
    TRY("prctl seccomp, read", ssize_t, (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, 8L), read(DATA, buffer, 20)));
    TRY("seccomp wrong", int, syscall(SYS_seccomp, 77, 0, 0));
    TRY("seccomp filter", int, syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, 8));
}

static void *nothing(void *argument) { return argument; }

static int cancel(void) {
    pthread_t thread;
    pthread_create(&thread, NULL, nothing, NULL);
    int result = pthread_cancel(thread);
    pthread_join(thread, NULL);
    return result;
}

static int in_vfork(int how) {
    pid_t child = vfork();
    if (child == 0) {
        if (how == 1) {
            close(DATA);
            dup2(BOTH, 45);
        }
        char *words[] = {"true", NULL};
        if (how == 2)
            execv("/bin/true", words);
        if (how == 3)
            execve("/none", words, (char **)8);
        _exit(6);
    }
    int status = -1;
    waitpid(child, &status, 0);
    return status;
}

static int spawned(int (*spawn)(pid_t *, const char *, const posix_spawn_file_actions_t *, const posix_spawnattr_t *, char *const *, char *const *),
                   const char *path, char **words, char **variables, int take) {
    pid_t child = -1;
    int error = spawn(take ? &child : NULL, path, NULL, NULL, words, variables);
    int status = -1;
    if (error == 0 && take)
        waitpid(child, &status, 0);
    return error * 65536 + status;
}

static void programs(void) {
    static char *words[] = {"sh", "-c", "exit 5", NULL};
    char **const lists[] = {words, NULL, (char **)8, (char **)(edge - 3)};
    char **const variables[] = {environ, NULL, (char **)8, (char **)(edge - 3), (char *[]){(char *)8, NULL}};
    const char *const paths[] = {"/bin/sh", "none", NULL, (char *)8, "", "data", "."};
    for (size_t p = 0; p < COUNT(paths); p++)
        for (size_t w = 0; w < COUNT(lists); w++) {
            TRY("execv", int, execv(paths[p], lists[w]));
            if (paths[p] && paths[p] != (char *)8)
                TRY("execvp", int, execvp(paths[p], lists[w]));
            for (size_t v = 0; v < COUNT(variables); v++) {
                TRY("execve", int, execve(paths[p], lists[w], variables[v]));
                TRY("fexecve", int, fexecve(p == 0 ? open("/bin/sh", O_RDONLY) : FDS[p], lists[w], variables[v]));
                TRY("posix_spawn", int, spawned(posix_spawn, paths[p], lists[w], variables[v], v % 2));
                if (paths[p] && paths[p] != (char *)8) {
                    TRY("execvpe", int, execvpe(paths[p], lists[w], variables[v]));
                    TRY("posix_spawnp", int, spawned(posix_spawnp, paths[p], lists[w], variables[v], 1));
                }
                TRY("execve raw", int, syscall(SYS_execve, paths[p], lists[w], variables[v]));
                TRY("execveat raw", int, syscall(SYS_execveat, AT_FDCWD, paths[p], lists[w], variables[v], 0));
            }
        }
    TRY("execl", int, execl("/bin/sh", "sh", "-c", "exit 4", (char *)NULL));
    TRY("execl none", int, execl("none", "sh", (char *)NULL));
    TRY("execlp", int, execlp("sh", "sh", "-c", "exit 3", (char *)NULL));
    TRY("execle", int, execle("/bin/sh", "sh", "-c", "exit 2", (char *)NULL, (char *[]){NULL}));
    TRY("execle hostile", int, execle("/bin/sh", "sh", (char *)NULL, (char **)8));
    TRY("environ hostile", int, (environ = (char **)8, execv("/bin/sh", words)));
    TRY("environ none", int, (environ = NULL, execv("/bin/sh", words)));
    TRY("environ none, open", int, (environ = (char **)8, chdir("/"), chroot("/"), open("/", O_RDONLY)));
    TRY("system null", int, system(NULL));
    TRY("system", int, system("exit 3"));
    TRY("popen", int, ({ FILE *pipe = popen("echo hi; exit 2", "r"); fgets(buffer, 50, pipe); pclose(pipe); }));
    TRY("popen wrong", int, POINTER(popen("echo hi", "z")));
    static wordexp_t expanded;
    TRY("wordexp", int, wordexp("$((1+1)) *nothing*", &expanded, 0));
    TRY("wordexp wrong", int, wordexp("(", &expanded, 0));
    TRY("_exit", int, (_exit(7), 0));
    TRY("_Exit", int, (_Exit(8), 0));
    TRY("exit", int, (exit(9), 0));
    for (int how = 0; how < 4; how++)
        TRY("vfork", int, in_vfork(how));
    TRY("vfork, read", ssize_t, (in_vfork(1), read(DATA, buffer, 30)));
    TRY("pthread_cancel", int, cancel());
    TRY("clone wrong", int, clone(NULL, NULL, 0, NULL));
    TRY("fork raw", int, ({ long child = syscall(SYS_fork); if (child == 0) { read(DATA, buffer, 3); syscall(SYS_exit_group, 5); } int status; waitpid(child, &status, 0); status; }));
}

static void raw(void) {
    const long numbers[] = {SYS_open, SYS_openat, SYS_openat2, SYS_creat, SYS_read, SYS_pread64, SYS_readv, SYS_preadv, SYS_preadv2, SYS_lseek,
                            SYS_sendfile, SYS_copy_file_range, SYS_splice, SYS_close, SYS_close_range, SYS_dup, SYS_dup2, SYS_dup3, SYS_fcntl,
                            SYS_chdir, SYS_fchdir, SYS_mmap, SYS_munmap, SYS_prctl, SYS_seccomp, SYS_setns, SYS_mount, SYS_umount2,
                            SYS_setgroups, SYS_capset, SYS_chroot, SYS_pivot_root, SYS_move_mount, SYS_getppid, 100000, -1};
    for (size_t n = 0; n < COUNT(numbers); n++) {
        if (numbers[n] == SYS_getppid)
            continue;
        TRY("raw nulls", int, syscall(numbers[n], 0L, 0L, 0L, 0L, 0L, 0L));
        TRY("raw closed", int, syscall(numbers[n], (long)CLOSED, 8L, 8L, 8L, 8L, 8L));
        TRY("raw data", int, syscall(numbers[n], (long)DATA, (long)buffer, 8L, 0L, 0L, 0L));
        TRY("raw wrong", int, syscall(numbers[n], -1L, -1L, -1L, -1L, -1L, -1L));
    }
    const char *const paths[] = {"data", NULL, (char *)8, edge};
    for (size_t p = 0; p < COUNT(paths); p++) {
        struct { unsigned long flags, mode, resolve; } how = {O_RDONLY, 0, 0};
        TRY("open raw", int, syscall(SYS_open, paths[p], O_RDONLY, 0));
        TRY("openat raw", int, syscall(SYS_openat, AT_FDCWD, paths[p], O_RDONLY, 0));
        TRY("openat2 raw", int, syscall(SYS_openat2, AT_FDCWD, paths[p], &how, sizeof how));
        TRY("openat2 raw hostile", int, syscall(SYS_openat2, AT_FDCWD, paths[p], 8L, sizeof how));
        TRY("exit raw", int, (syscall(SYS_exit_group, 3), 0));
    }
}

int main(int argc, char **argv) {
    /* The result of a wrong address may depend on the address. */
    if (!(personality(0xffffffff) & ADDR_NO_RANDOMIZE)) {
        check(personality(ADDR_NO_RANDOMIZE));
        check(execv("/proc/self/exe", argv));
    }
    data_path = argv[argc - 1];
    mkdir("sub", 0700);
    mkfifo("pipe", 0600);
    symlink("data", "link");
    symlink("loop", "loop");
    int both = check(open("both", O_RDWR | O_CREAT, 0600));
    check(write(both, "0123456789", 10));
    check(close(both));
    char *pages = need(mmap(NULL, 3 * 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    check(munmap(pages + 4096, 4096));
    edge = pages + 4095;
    read_only = pages + 2 * 4096;
    check(mprotect(read_only, 4096, PROT_READ));
    signal(SIGPIPE, SIG_IGN);
    reading();
    opening();
    looking();
    descriptors_and_directories();
    people_and_places();
    programs();
    raw();
    return 0;
}
