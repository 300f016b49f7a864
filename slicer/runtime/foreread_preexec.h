/*
 * foreread_preexec.h - the prefetch thread: a program's own reads, made known ahead of it.
 *
 * A program translated by `foreread slice` consists of two threads (AASFP: Yang, Mitra, Chiueh,
 * "A Decoupled Architecture for Application-Specific File Prefetching", section 3): the
 * computation thread, which is the original program, and the prefetch thread, which is what of
 * it decides where files are read. Both meet in these calls.
 *
 * The prefetch thread is a process of its own, cloned from the program at the start of main. Its
 * memory is private, its descriptors are its own, and a system call filter lets it do nothing
 * that the outside can see. The program never waits for it, and no failure of it reaches the program.
 *
 * Call IDs. The n-th counted call of the computation thread, foreread_call(), and the n-th of the
 * prefetch thread are the same read. The calls marked [1] below count as one each,
 * whatever they return; all others count nothing. Every thread that reads counts for itself.
 *
 * Calls of one side do nothing on the other, but for foreread_call() in what of the program the prefetch thread
 * runs as it is: there it counts the prefetch thread's. errno is left alone by every call of the
 * computation thread.
 *
 * Environment. FOREREAD_PREEXEC=0 turns all of this off; =1 has a prefetch process at once, also where all
 * that is read is known to be in memory already, or the program does not wait for it. FOREREAD_PREEXEC_REPORT=FILE appends
 * a line of JSON to the file when the program ends. FOREREAD_PREEXEC_QUEUE=N is the number of
 * reads the prefetch thread may be ahead (65536). FOREREAD_PREEXEC_CPU=SECONDS is the processor
 * time it may use between two calls of this header (5). FOREREAD_PREEXEC_TRACE=FOLDER has both sides' reads written down there,
 * for tests (src/trace.h).
 *
 * Offsets and lengths are in bytes.
 */
#ifndef FOREREAD_CALL_H
#define FOREREAD_CALL_H

#include "foreread_counter.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The calling thread has made n reads that the prefetch thread has calls for, or one. */
static __inline__ void foreread_calls(unsigned n) {
    struct foreread_counter *counter = foreread_counter;
    n += FOREREAD_CHARACTERS - foreread_left;
    foreread_left = FOREREAD_CHARACTERS;
    counter->calls += n;
    if (__builtin_expect(counter->calls >= counter->wake_at, 0))
        foreread_ring(n);
}

static __inline__ void foreread_call(void) {
    foreread_calls(1);
}

/* One of a character: two instructions. The others have no more to do. */
#define foreread_character() (--foreread_left != 0 ? (void)0 : foreread_characters())
/* One that is still to come. */
#define foreread_ahead() (foreread_call(), (void)++foreread_owed)

#ifdef __cplusplus
}

#if __cplusplus >= 201103L
/* What std::thread is given to run, foreread_body(f) in place of f: the thread's calls count with those of the thread that the
 * other side makes at the same place. */
template <typename F> struct foreread_thread_body {
    F f;
    __UINT64_TYPE__ path;
    template <typename... A> auto operator()(A &&...a) -> decltype(void(f(static_cast<A &&>(a)...))) {
        foreread_thread_begin(path);
        f(static_cast<A &&>(a)...);
        foreread_thread_end();
    }
};

template <typename R, typename C> struct foreread_member_body {
    R C::*f;
    __UINT64_TYPE__ path;
    template <typename... A> auto operator()(C *self, A &&...a) -> decltype(void((self->*f)(static_cast<A &&>(a)...))) {
        foreread_thread_begin(path);
        (self->*f)(static_cast<A &&>(a)...);
        foreread_thread_end();
    }
};

/* The same for std::async, which is answered: foreread_async_body(f). Also if f throws. */
struct foreread_thread_part {
    explicit foreread_thread_part(__UINT64_TYPE__ path) { foreread_thread_begin(path); }
    ~foreread_thread_part() { foreread_thread_leave(); }
};

template <typename F> struct foreread_async_thread {
    F f;
    __UINT64_TYPE__ path;
    template <typename... A> auto operator()(A &&...a) -> decltype(f(static_cast<A &&>(a)...)) {
        foreread_thread_part part(path);
        return f(static_cast<A &&>(a)...);
    }
};

template <typename R, typename C> struct foreread_async_member {
    R C::*f;
    __UINT64_TYPE__ path;
    template <typename... A> auto operator()(C *self, A &&...a) -> decltype((self->*f)(static_cast<A &&>(a)...)) {
        foreread_thread_part part(path);
        return (self->*f)(static_cast<A &&>(a)...);
    }
};

template <typename F> foreread_async_thread<F> foreread_async_body(F f) {
    return {static_cast<F &&>(f), foreread_thread_path()};
}

template <typename R, typename C> foreread_async_member<R, C> foreread_async_body(R C::*f) {
    return {f, foreread_thread_path()};
}

#if __cplusplus >= 201402L
/* What is made of one generic lambda expression, for the types it is used for. */
template <typename F, typename... G> struct foreread_overloads : F, foreread_overloads<G...> {
    foreread_overloads(F f, G... g)
        : F(static_cast<F &&>(f)), foreread_overloads<G...>(static_cast<G &&>(g)...) {}
    using F::operator();
    using foreread_overloads<G...>::operator();
};

template <typename F> struct foreread_overloads<F> : F {
    explicit foreread_overloads(F f) : F(static_cast<F &&>(f)) {}
    using F::operator();
};

template <typename... F> foreread_overloads<F...> prefetch_overloads(F... f) {
    return foreread_overloads<F...>(static_cast<F &&>(f)...);
}
#endif

template <typename F> foreread_thread_body<F> foreread_body(F f) {
    return {static_cast<F &&>(f), foreread_thread_path()};
}

template <typename R, typename C> foreread_member_body<R, C> foreread_body(R C::*f) {
    return {f, foreread_thread_path()};
}
#endif
#endif

#endif /* FOREREAD_CALL_H */

/* What a translated program has at its top, where no header of the system may be yet, ends here. */
#if !defined(FOREREAD_PREEXEC_H) && !defined(FOREREAD_CALL_ONLY)
#define FOREREAD_PREEXEC_H

#include <pthread.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>
#include <sys/uio.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Parameters have names that no macro of the program around this may have. */
#pragma GCC visibility push(default)

#define FOREREAD_SIGNAL 1
#define FOREREAD_WAIT 2

/* ---- the computation thread ---- */

/* Whether the program may come to wait for a file: whether one of these paths, each ended by a zero byte and the last by two, or
 * of main's arguments, is of a file that is not in memory, or it cannot be told. It must read no others. */
int foreread_may_wait(int __argc, char **__argv, const char *__paths);

/* Clones the prefetch process, which runs f(argc, argv). At the start of main, before the program
 * starts threads. Does nothing the second time, nor in a process that cannot have one. */
void foreread_create_prefetch_thread(void (*__f)(int, char **), int __argc, char **__argv);

/* Optional, defined by the program: where libforeread.so.1 is, if the loader does not find it by its name. */
extern const char *foreread_library_path;

/* The value of an expression, counted: FOREREAD_COUNTED(read(fd, buffer, n)). */
#define FOREREAD_COUNTED(expression)                                                               \
    (__extension__({                                                                               \
        __typeof__(expression) foreread_value_ = (expression);                                     \
        foreread_call();                                                                           \
        foreread_value_;                                                                           \
    }))

/* A synchronization point: its n-th FOREREAD_WAIT, in the prefetch thread, lasts until its n-th
 * FOREREAD_SIGNAL, in the computation thread. Points are numbered 0 to FOREREAD_POINTS - 1. */
void foreread_synchronize(int __point, int __type);

/* Sends what the prefetch thread cannot know by itself; foreread_receive() of the same channel gets it.
 * Never waits: what finds no room is lost, and with it the prefetch thread's use of all channels. */
void foreread_send(int __channel, const void *__data, size_t __bytes);
/* Sends a descriptor. The receiver opens the file itself: nothing but the file is shared. */
void foreread_send_fd(int __channel, int __fd);

/* pthread_create() for a thread that reads: its calls count with those of the thread that the prefetch
 * thread makes by prefetch_pthread_create() at the same place. Returns as pthread_create(). */
int foreread_pthread_create(pthread_t *__newthread, const pthread_attr_t *__attributes, void *(*__f)(void *),
                            void *__argument);

/* ---- the prefetch thread ----
 *
 * Descriptors and streams are real and read-only, so fstat(), fileno() and the like work on them. A file that is not a
 * regular one is not opened: its descriptor is a blind one, whose reads are assumed to be
 * complete, and whose data cannot be had. */

int prefetch_open(const char *__path, int __flags, ...);
int prefetch_openat(int __folder, const char *__path, int __flags, ...);
int prefetch_creat(const char *__path, mode_t __mode);
int prefetch_dup(int __fd);
int prefetch_dup2(int __from, int __to);
int prefetch_dup3(int __from, int __to, int __flags);
int prefetch_close(int __fd);

/* Enters the program's descriptor into the table, unless foreread_receive_fd() has done so. Returns the
 * descriptor to go on with: the same number where it is free. */
int inform_open(int __fd);
int inform_close(int __fd);

/* The results of the real calls, without their data. */
ssize_t prefetch_read(int __fd, size_t __bytes);                                             /* [1] */
ssize_t prefetch_pread(int __fd, size_t __bytes, off_t __offset);                            /* [1] */
ssize_t prefetch_readv(int __fd, const struct iovec *__parts, int __count);                  /* [1] */
ssize_t prefetch_preadv(int __fd, const struct iovec *__parts, int __count, off_t __offset); /* [1] */
off_t prefetch_lseek(int __fd, off_t __offset, int __whence);

/* The real calls: later addresses depend on the data. */
ssize_t fetch_read(int __fd, void *__data, size_t __bytes);                                  /* [1] */
ssize_t fetch_pread(int __fd, void *__data, size_t __bytes, off_t __offset);                 /* [1] */
ssize_t fetch_readv(int __fd, const struct iovec *__parts, int __count);                     /* [1] */
ssize_t fetch_preadv(int __fd, const struct iovec *__parts, int __count, off_t __offset);    /* [1] */

/* The value of a call of the prefetch thread that the program does not count:
 * FOREREAD_UNCOUNTED(fetch_read(fd, data, n)). */
#define FOREREAD_UNCOUNTED(...)                                                                    \
    (__extension__({                                                                               \
        __typeof__(__VA_ARGS__) foreread_value_ = (__VA_ARGS__);                                   \
        prefetch_uncount();                                                                        \
        foreread_value_;                                                                           \
    }))
void prefetch_uncount(void);

/* Before code of the program's own that reads runs as it is: it finds descriptors and streams where the slice has come,
 * and the slice goes on where it leaves them. */
void prefetch_whole(void);

/* Memory of whose contents nothing is looked at. It costs a page only where it is written to. */
void *prefetch_malloc(size_t __bytes);
void *prefetch_calloc(size_t __count, size_t __bytes);
/* Of these, and of the C library's. */
void prefetch_free(void *__address);

FILE *prefetch_fopen(const char *__path, const char *__mode);
FILE *prefetch_fdopen(int __fd, const char *__mode);
FILE *prefetch_freopen(const char *__path, const char *__mode, FILE *__stream);
int prefetch_fclose(FILE *__stream);

size_t prefetch_fread(FILE *__stream, size_t __size, size_t __count);                        /* [1] */
/* EOF, or 0 for a character that is not known. */
int prefetch_getc(FILE *__stream);                                                           /* [1] */
int prefetch_fseek(FILE *__stream, long __offset, int __whence);
int prefetch_fseeko(FILE *__stream, off_t __offset, int __whence);
long prefetch_ftell(FILE *__stream);
off_t prefetch_ftello(FILE *__stream);
void prefetch_rewind(FILE *__stream);
int prefetch_fgetpos(FILE *__stream, fpos_t *__position);
int prefetch_fsetpos(FILE *__stream, const fpos_t *__position);
int prefetch_feof(FILE *__stream);
int prefetch_ferror(FILE *__stream);
void prefetch_clearerr(FILE *__stream);

size_t fetch_fread(void *__data, size_t __size, size_t __count, FILE *__stream);             /* [1] */
int fetch_getc(FILE *__stream);                                                              /* [1] */
int fetch_ungetc(int __character, FILE *__stream);
char *fetch_fgets(char *__line, int __bytes, FILE *__stream);                                /* [1] */
ssize_t fetch_getline(char **__line, size_t *__bytes, FILE *__stream);                       /* [1] */
ssize_t fetch_getdelim(char **__line, size_t *__bytes, int __delimiter, FILE *__stream);     /* [1] */
int fetch_fscanf(FILE *__stream, const char *__format, ...)                                  /* [1] */
    __attribute__((__format__(__scanf__, 2, 3)));
int fetch_vfscanf(FILE *__stream, const char *__format, va_list __arguments)                 /* [1] */
    __attribute__((__format__(__scanf__, 2, 0)));

/* Maps privately, whatever the flags say. Bytes whose values are needed are read in place; the
 * others are announced. */
void *prefetch_mmap(void *__address, size_t __bytes, int __protection, int __flags, int __fd, off_t __offset);
void prefetch_touch(const void *__address, size_t __bytes);                                  /* [1] */
/* What the program looks at before its next call, by loads of its own: `bytes` at an address, or at
 * `count` addresses that are as far apart as the first two. Not counted. */
void prefetch_load(const void *__address, size_t __bytes);
void prefetch_loads(const void *__first, const void *__second, size_t __bytes, size_t __count);
/* The program's foreread_call() where it reads nothing: by these it is known how far its loads have come. */
void prefetch_call(void);                                                                    /* [1] */
int prefetch_munmap(void *__address, size_t __bytes);

/* Waits for what the program sends on this channel. Returns the bytes sent, of which no more than
 * `bytes` are stored. Where it was lost, the calling prefetch thread ends. */
size_t foreread_receive(int __channel, void *__data, size_t __bytes);
/* The file of a descriptor that the program sent, at the program's offset, opened for this process; in
 * the table already. */
int foreread_receive_fd(int __channel);

int prefetch_pthread_create(pthread_t *__newthread, const pthread_attr_t *__attributes, void *(*__f)(void *),
                            void *__argument);
/* What the program's exit() is to the prefetch thread: its end. What it has announced is still fetched. */
void prefetch_exit(int __status) __attribute__((__noreturn__));

/* a / b and a % b, quicker where b is a power of two. */
static inline int prefetch_quotient(int __a, int __b) {
    return __a >= 0 && __b > 0 && (__b & (__b - 1)) == 0 ? __a >> __builtin_ctz(__b) : __a / __b;
}

static inline int prefetch_remainder(int __a, int __b) {
    return __a >= 0 && __b > 0 && (__b & (__b - 1)) == 0 ? __a & (__b - 1) : __a % __b;
}

/* Built into Clang, which has translated the program, and maybe not into the compiler: where a program asks for them. */
#ifdef __has_builtin
#if !__has_builtin(__builtin_rotateleft32)
#define FOREREAD_ROTATE(bits, x, left)                                                             \
    __extension__({                                                                                \
        __UINT##bits##_TYPE__ __x = (x);                                                           \
        unsigned __n = (unsigned)(left) & (bits - 1);                                              \
        (__UINT##bits##_TYPE__)(__x << __n | __x >> ((bits - __n) & (bits - 1)));                  \
    })
#define __builtin_rotateleft8(x, n) FOREREAD_ROTATE(8, x, n)
#define __builtin_rotateleft16(x, n) FOREREAD_ROTATE(16, x, n)
#define __builtin_rotateleft32(x, n) FOREREAD_ROTATE(32, x, n)
#define __builtin_rotateleft64(x, n) FOREREAD_ROTATE(64, x, n)
#define __builtin_rotateright8(x, n) FOREREAD_ROTATE(8, x, -(n))
#define __builtin_rotateright16(x, n) FOREREAD_ROTATE(16, x, -(n))
#define __builtin_rotateright32(x, n) FOREREAD_ROTATE(32, x, -(n))
#define __builtin_rotateright64(x, n) FOREREAD_ROTATE(64, x, -(n))
#endif
#if !__has_builtin(__builtin_assume)
#define __builtin_assume(condition) ((void)0)
#endif
#endif

#pragma GCC visibility pop

#ifdef __cplusplus
}

/* Of an object that is there only as long as the expression around it. */
template <typename T> T *prefetch_address(const T &object) {
    return const_cast<T *>(__builtin_addressof(object));
}
#endif

#endif /* FOREREAD_PREEXEC_H */
