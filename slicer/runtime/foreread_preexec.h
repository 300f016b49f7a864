/*
 * foreread_preexec.h - the prefetch thread, which announces a program's own reads ahead of the program.
 *
 * A program translated by `foreread slice` consists of two threads (AASFP: Yang, Mitra, Chiueh, "A Decoupled
 * Architecture for Application-Specific File Prefetching", section 3): the computation thread, which is the original
 * program, and the prefetch thread, which is the part of the program that decides where files are read. Both meet in
 * these calls.
 *
 * The prefetch thread is a separate process, cloned from the program at the start of main. Its memory and its
 * descriptors are its own, and a system call filter prevents effects outside of it. The program never waits for it,
 * except where it ends the process, and no failure of it reaches the program.
 *
 * Call IDs. The n-th counted call of the computation thread, foreread_call(), and the n-th of the prefetch thread
 * are the same read. The calls marked [1] below count as one each, whatever they return; the others do not count.
 * Each thread that reads has its own count.
 *
 * Calls of one side do nothing on the other, except foreread_call() in functions that the prefetch thread runs
 * unchanged: there it counts for the prefetch thread. No call of the computation thread changes errno.
 *
 * Environment. FOREREAD_PREEXEC=0 turns all of this off; =1 starts the prefetch process at once, even if all files
 * are known to be in memory or the program does not wait for them. FOREREAD_PREEXEC_REPORT=FILE appends a line of
 * JSON to the file when the program ends. FOREREAD_PREEXEC_QUEUE=N is the number of reads that the prefetch thread
 * may be ahead (65536). FOREREAD_PREEXEC_CPU=SECONDS is the processor time that it may use between two calls of this
 * header (5). FOREREAD_PREEXEC_TRACE=FOLDER makes both sides write their reads to files in this folder, for tests
 * (src/trace.h).
 *
 * Offsets and lengths are in bytes.
 */
#ifndef FOREREAD_CALL_H
#define FOREREAD_CALL_H

#include "foreread_counter.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Counts n reads of the calling thread for which the prefetch thread has calls; foreread_call() counts one. */
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

/* Counts the read of a character, in two instructions. */
#define foreread_character() (--foreread_left != 0 ? (void)0 : foreread_characters())
/* Counts a read before it is made. */
#define foreread_ahead() (foreread_call(), (void)++foreread_owed)

#ifdef __cplusplus
}

#if __cplusplus >= 201103L
/* Wraps the function passed to std::thread: foreread_body(f) replaces f. The thread's calls are counted with those
 * of the thread that the other side makes at the same place. */
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

/* The same for std::async, which returns a result: foreread_async_body(f). The count ends also if f throws. */
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
/* The instantiations of one generic lambda expression, for the types that it is used with. */
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

/* End of the part that a translated program has at its top, before any system header. */
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

/* Parameters have names that no macro of the surrounding program may have. */
#pragma GCC visibility push(default)

#define FOREREAD_SIGNAL 1
#define FOREREAD_WAIT 2

/* ---- the computation thread ---- */

/* True if the program may have to wait for a file: if one of these paths, or one of main's arguments, is of a file
 * that is not in memory, or if this is unknown. Each path ends with a zero byte, the last with two. The program must
 * read no other files. */
int foreread_may_wait(int __argc, char **__argv, const char *__paths);

/* Clones the prefetch process, which runs f(argc, argv). To be called at the start of main, before the program
 * starts threads. Does nothing the second time, nor in a process that cannot have a prefetch process. */
void foreread_create_prefetch_thread(void (*__f)(int, char **), int __argc, char **__argv);

/* Optional, defined by the program: the path of libforeread.so.1, if the loader does not find it by its name. */
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

/* Sends data that the prefetch thread cannot compute itself; foreread_receive() of the same channel receives it.
 * Never waits: if there is no room, the message is lost, and all channels become unusable for the prefetch thread. */
void foreread_send(int __channel, const void *__data, size_t __bytes);
/* Sends a descriptor. The receiver opens the file itself; only the file is shared. */
void foreread_send_fd(int __channel, int __fd);

/* pthread_create() for a thread that reads: its calls are counted with those of the thread that the prefetch thread
 * makes by prefetch_pthread_create() at the same place. Returns the value of pthread_create(). */
int foreread_pthread_create(pthread_t *__newthread, const pthread_attr_t *__attributes, void *(*__f)(void *),
                            void *__argument);

/* ---- the prefetch thread ----
 *
 * Descriptors and streams are real and read-only: fstat(), fileno() and the like work on them. A file that is not
 * regular is not opened. Its descriptor is blind: reads of it are assumed to be complete, and their data is not
 * available. */

int prefetch_open(const char *__path, int __flags, ...);
int prefetch_openat(int __folder, const char *__path, int __flags, ...);
int prefetch_creat(const char *__path, mode_t __mode);
int prefetch_dup(int __fd);
int prefetch_dup2(int __from, int __to);
int prefetch_dup3(int __from, int __to, int __flags);
int prefetch_close(int __fd);

/* Enters the program's descriptor into the table, unless foreread_receive_fd() has done so. Returns the descriptor
 * to use from then on: the same number if it is free. */
int inform_open(int __fd);
int inform_close(int __fd);

/* Return the results of the real calls, without data. */
ssize_t prefetch_read(int __fd, size_t __bytes);                                             /* [1] */
ssize_t prefetch_pread(int __fd, size_t __bytes, off_t __offset);                            /* [1] */
ssize_t prefetch_readv(int __fd, const struct iovec *__parts, int __count);                  /* [1] */
ssize_t prefetch_preadv(int __fd, const struct iovec *__parts, int __count, off_t __offset); /* [1] */
off_t prefetch_lseek(int __fd, off_t __offset, int __whence);

/* Make the real calls, because later offsets depend on the data. */
ssize_t fetch_read(int __fd, void *__data, size_t __bytes);                                  /* [1] */
ssize_t fetch_pread(int __fd, void *__data, size_t __bytes, off_t __offset);                 /* [1] */
ssize_t fetch_readv(int __fd, const struct iovec *__parts, int __count);                     /* [1] */
ssize_t fetch_preadv(int __fd, const struct iovec *__parts, int __count, off_t __offset);    /* [1] */

/* The value of a call of the prefetch thread that the program does not count: FOREREAD_UNCOUNTED(fetch_read(fd,
 * data, n)). */
#define FOREREAD_UNCOUNTED(...)                                                                    \
    (__extension__({                                                                               \
        __typeof__(__VA_ARGS__) foreread_value_ = (__VA_ARGS__);                                   \
        prefetch_uncount();                                                                        \
        foreread_value_;                                                                           \
    }))
void prefetch_uncount(void);

/* To be called before code of the program that reads runs unchanged: that code finds descriptors and streams at the
 * slice's positions, and the slice continues at the positions where it leaves them. */
void prefetch_whole(void);

/* Memory whose content is not used. It costs a page only where it is written to. */
void *prefetch_malloc(size_t __bytes);
void *prefetch_calloc(size_t __count, size_t __bytes);
/* Releases such memory, and memory of the C library. */
void prefetch_free(void *__address);

FILE *prefetch_fopen(const char *__path, const char *__mode);
FILE *prefetch_fdopen(int __fd, const char *__mode);
FILE *prefetch_freopen(const char *__path, const char *__mode, FILE *__stream);
int prefetch_fclose(FILE *__stream);

size_t prefetch_fread(FILE *__stream, size_t __size, size_t __count);                        /* [1] */
/* EOF, or 0 in place of an unknown character. */
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

/* Maps privately, whatever the flags are. Bytes whose values are needed are read in place, the others are announced. */
void *prefetch_mmap(void *__address, size_t __bytes, int __protection, int __flags, int __fd, off_t __offset);
void prefetch_touch(const void *__address, size_t __bytes);                                  /* [1] */
/* Announces bytes that the program loads before its next call: `bytes` at an address, or at `count` addresses that
 * are as far apart as the first two. Not counted. */
void prefetch_load(const void *__address, size_t __bytes);
void prefetch_loads(const void *__first, const void *__second, size_t __bytes, size_t __count);
/* The counterpart of a foreread_call() of the program without a read: such calls show how far the program's loads
 * have come. */
void prefetch_call(void);                                                                    /* [1] */
int prefetch_munmap(void *__address, size_t __bytes);

/* Waits for a message of the program on this channel. Returns its size in bytes, of which at most `bytes` are
 * stored. If the message was lost, the calling prefetch thread ends. */
size_t foreread_receive(int __channel, void *__data, size_t __bytes);
/* The file of a descriptor that the program sent, at the program's offset, opened in this process and already in the
 * table. */
int foreread_receive_fd(int __channel);

int prefetch_pthread_create(pthread_t *__newthread, const pthread_attr_t *__attributes, void *(*__f)(void *),
                            void *__argument);
/* Replaces exit(): ends the prefetch thread. Reads that it has announced are still fetched. */
void prefetch_exit(int __status) __attribute__((__noreturn__));

/* a / b and a % b, faster if b is a power of two. */
static inline int prefetch_quotient(int __a, int __b) {
    return __a >= 0 && __b > 0 && (__b & (__b - 1)) == 0 ? __a >> __builtin_ctz(__b) : __a / __b;
}

static inline int prefetch_remainder(int __a, int __b) {
    return __a >= 0 && __b > 0 && (__b & (__b - 1)) == 0 ? __a & (__b - 1) : __a % __b;
}

/* Built-in functions of Clang, which has translated the program, that the compiler may lack. */
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

/* The address of a temporary object. */
template <typename T> T *prefetch_address(const T &object) {
    return const_cast<T *>(__builtin_addressof(object));
}
#endif

#endif /* FOREREAD_PREEXEC_H */
