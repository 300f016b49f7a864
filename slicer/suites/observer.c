/*
 * observer.c - observes a program's reads from outside: preloaded by the suites that compare them with the reads of
 * its prefetch thread (runtime/src/trace.h, addresses.py).
 *
 * Each call is first made by the C library's own function; then the runtime receives the file and the bytes that
 * were read. The place of a read through a stream is the stream's position before it, and its length the distance by
 * which the position moved.
 *
 * Not seen: reads that the compiler has inlined (getc_unlocked), and loads from mapped files.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "../runtime/src/trace.h"

/* Without the headers' macros of these names. */
#undef getc
#undef getchar
#undef getc_unlocked
#undef getchar_unlocked
#undef fgetc_unlocked
#undef fread_unlocked

static struct trace_calls calls;

void foreread_observe(const struct trace_calls *given);
void foreread_observe(const struct trace_calls *given) {
    calls = *given;
}

/* The next library's function of this name. */
static void *real(const char *name) {
    void *found = dlsym(RTLD_NEXT, name);
    if (found == NULL)
        abort();
    return found;
}

#define REAL(name)                                                                                 \
    static __typeof__(&name) real_;                                                                \
    if (real_ == NULL)                                                                             \
        real_ = (__typeof__(&name))real(#name)

static void tell(int fd, off_t offset, ssize_t bytes) {
    struct trace_seen read = {0};
    struct stat facts;
    int error = errno;
    if (calls.seen == NULL)
        return;
    if (bytes >= 0 && offset >= 0 && fstat(fd, &facts) == 0 && S_ISREG(facts.st_mode))
        read = (struct trace_seen){true, facts.st_dev, facts.st_ino, (uint64_t)offset, (uint64_t)bytes};
    calls.seen(&read);
    errno = error;
}

/* For a read that moved the descriptor's offset. */
static void tell_moved(int fd, ssize_t bytes) {
    if (calls.seen == NULL)
        return;
    int error = errno;
    off_t now = bytes >= 0 ? lseek(fd, 0, SEEK_CUR) : -1;
    errno = error;
    tell(fd, now >= 0 ? now - bytes : -1, bytes);
}

static off_t place(FILE *stream) {
    if (calls.seen == NULL)
        return -1;
    int error = errno;
    off_t at = ftello(stream);
    errno = error;
    return at;
}

static void tell_stream(FILE *stream, off_t before) {
    if (calls.seen == NULL)
        return;
    off_t after = place(stream);
    tell(fileno(stream), after < 0 ? -1 : before, after < before ? 0 : after - before);
}

#define DESCRIPTOR(name, parameters, arguments, told)                                              \
    ssize_t name parameters {                                                                      \
        REAL(name);                                                                                \
        ssize_t got = real_ arguments;                                                             \
        told;                                                                                      \
        return got;                                                                                \
    }

DESCRIPTOR(read, (int fd, void *data, size_t bytes), (fd, data, bytes), tell_moved(fd, got))
DESCRIPTOR(readv, (int fd, const struct iovec *parts, int count), (fd, parts, count), tell_moved(fd, got))
DESCRIPTOR(pread, (int fd, void *data, size_t bytes, off_t at), (fd, data, bytes, at), tell(fd, at, got))
DESCRIPTOR(pread64, (int fd, void *data, size_t bytes, off64_t at), (fd, data, bytes, at), tell(fd, at, got))
DESCRIPTOR(preadv, (int fd, const struct iovec *parts, int count, off_t at), (fd, parts, count, at), tell(fd, at, got))
DESCRIPTOR(preadv64, (int fd, const struct iovec *parts, int count, off64_t at), (fd, parts, count, at), tell(fd, at, got))

/* The names of these calls with _FORTIFY_SOURCE. */
ssize_t __read_chk(int, void *, size_t, size_t);
ssize_t __pread_chk(int, void *, size_t, off_t, size_t);
ssize_t __pread64_chk(int, void *, size_t, off64_t, size_t);
DESCRIPTOR(__read_chk, (int fd, void *data, size_t bytes, size_t room), (fd, data, bytes, room), tell_moved(fd, got))
DESCRIPTOR(__pread_chk, (int fd, void *data, size_t bytes, off_t at, size_t room), (fd, data, bytes, at, room), tell(fd, at, got))
DESCRIPTOR(__pread64_chk, (int fd, void *data, size_t bytes, off64_t at, size_t room), (fd, data, bytes, at, room), tell(fd, at, got))

#define STREAM(type, name, parameters, arguments, stream)                                          \
    type name parameters {                                                                         \
        REAL(name);                                                                                \
        FILE *of = stream;                                                                         \
        off_t before = place(of);                                                                  \
        type got = real_ arguments;                                                                \
        tell_stream(of, before);                                                                   \
        return got;                                                                                \
    }

size_t __fread_chk(void *, size_t, size_t, size_t, FILE *);
size_t __fread_unlocked_chk(void *, size_t, size_t, size_t, FILE *);
char *__fgets_chk(char *, size_t, int, FILE *);
char *__fgets_unlocked_chk(char *, size_t, int, FILE *);
ssize_t __getdelim(char **, size_t *, int, FILE *);
int _IO_getc(FILE *);

STREAM(size_t, fread, (void *data, size_t size, size_t count, FILE *s), (data, size, count, s), s)
STREAM(size_t, fread_unlocked, (void *data, size_t size, size_t count, FILE *s), (data, size, count, s), s)
STREAM(size_t, __fread_chk, (void *data, size_t room, size_t size, size_t count, FILE *s), (data, room, size, count, s), s)
STREAM(size_t, __fread_unlocked_chk, (void *data, size_t room, size_t size, size_t count, FILE *s), (data, room, size, count, s), s)
STREAM(char *, fgets, (char *data, int room, FILE *s), (data, room, s), s)
STREAM(char *, fgets_unlocked, (char *data, int room, FILE *s), (data, room, s), s)
STREAM(char *, __fgets_chk, (char *data, size_t room, int bytes, FILE *s), (data, room, bytes, s), s)
STREAM(char *, __fgets_unlocked_chk, (char *data, size_t room, int bytes, FILE *s), (data, room, bytes, s), s)
STREAM(ssize_t, getline, (char **line, size_t *room, FILE *s), (line, room, s), s)
STREAM(ssize_t, getdelim, (char **line, size_t *room, int end, FILE *s), (line, room, end, s), s)
STREAM(ssize_t, __getdelim, (char **line, size_t *room, int end, FILE *s), (line, room, end, s), s)
STREAM(int, getc, (FILE *s), (s), s)
STREAM(int, _IO_getc, (FILE *s), (s), s)
STREAM(int, fgetc, (FILE *s), (s), s)
STREAM(int, getc_unlocked, (FILE *s), (s), s)
STREAM(int, fgetc_unlocked, (FILE *s), (s), s)
STREAM(int, getchar, (void), (), stdin)
STREAM(int, getchar_unlocked, (void), (), stdin)

/* The names of scanf() in the standards. A header selects one of them by an asm label. */
#define SCANF(prefix, is)                                                                          \
    int is##vfscanf(FILE *, const char *, va_list) __asm__(prefix "vfscanf");                      \
    int is##fscanf(FILE *, const char *, ...) __asm__(prefix "fscanf");                            \
    int is##scanf(const char *, ...) __asm__(prefix "scanf");                                      \
    int is##vfscanf(FILE *s, const char *format, va_list arguments) {                              \
        static int (*real_)(FILE *, const char *, va_list);                                        \
        if (real_ == NULL)                                                                         \
            *(void **)&real_ = real(prefix "vfscanf");                                             \
        off_t before = place(s);                                                                   \
        int got = real_(s, format, arguments);                                                     \
        tell_stream(s, before);                                                                    \
        return got;                                                                                \
    }                                                                                              \
    int is##fscanf(FILE *s, const char *format, ...) {                                             \
        va_list arguments;                                                                         \
        va_start(arguments, format);                                                               \
        int got = is##vfscanf(s, format, arguments);                                               \
        va_end(arguments);                                                                         \
        return got;                                                                                \
    }                                                                                              \
    int is##scanf(const char *format, ...) {                                                       \
        va_list arguments;                                                                         \
        va_start(arguments, format);                                                               \
        int got = is##vfscanf(stdin, format, arguments);                                           \
        va_end(arguments);                                                                         \
        return got;                                                                                \
    }
SCANF("", plain_)
SCANF("__isoc99_", c99_)
SCANF("__isoc23_", c23_)

/* Ends of the program that run no destructors. */
static void end(void) {
    if (calls.ends != NULL)
        calls.ends();
}

static __attribute__((destructor)) void ends(void) {
    end();
}

void _exit(int status) {
    REAL(_exit);
    end();
    real_(status);
    __builtin_unreachable();
}

void _Exit(int status) {
    _exit(status);
}

void abort(void) {
    static void (*really)(void);
    if (really == NULL)
        *(void **)&really = dlsym(RTLD_NEXT, "abort");
    end();
    really();
    __builtin_unreachable();
}
