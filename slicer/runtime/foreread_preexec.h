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
 * Calls of one side do nothing on the other. errno is left alone by every call of the
 * computation thread.
 *
 * Environment. FOREREAD_PREEXEC=0 turns all of this off. FOREREAD_PREEXEC_REPORT=FILE appends
 * a line of JSON to the file when the program ends. FOREREAD_PREEXEC_QUEUE=N is the number of
 * reads the prefetch thread may be ahead (65536). FOREREAD_PREEXEC_CPU=SECONDS is the processor
 * time it may use between two calls of this header (5).
 *
 * Offsets and lengths are in bytes.
 */
#ifndef FOREREAD_CALL_H
#define FOREREAD_CALL_H

#ifdef __cplusplus
extern "C" {
#endif

/* What a thread counts its calls in; the library's. */
struct foreread_counter {
    /* Written by one thread and read by another process, on its own: that the compiler leaves it alone is enough. */
    volatile __UINT64_TYPE__ calls;
    /* At this many calls the library is rung. */
    volatile __UINT64_TYPE__ wake_at;
};

/* Characters a thread reads before it counts them. */
#define FOREREAD_CHARACTERS 64u

#pragma GCC visibility push(default)
/* The calling thread's, and how many characters it may still read. In the program itself, so no table is looked up. */
extern __thread struct foreread_counter *foreread_counter __attribute__((tls_model("local-exec")));
extern __thread unsigned foreread_left __attribute__((tls_model("local-exec")));
/* Of n calls that are counted: the last is where the library is rung. */
void foreread_ring(unsigned n);
/* Counts the characters that have been read. */
void foreread_characters(void);
#pragma GCC visibility pop

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

#ifdef __cplusplus
}
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

#pragma GCC visibility push(default)

#define FOREREAD_SIGNAL 1
#define FOREREAD_WAIT 2

/* ---- the computation thread ---- */

/* Clones the prefetch process, which runs f(argc, argv). At the start of main, before the program
 * starts threads. Does nothing the second time, nor in a process that cannot have one. */
void foreread_create_prefetch_thread(void (*f)(int, char **), int argc, char **argv);

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
#define FOREREAD_POINTS 4096
void foreread_synchronize(int point, int type);

/* Sends what the prefetch thread cannot know by itself; foreread_receive() of the same channel gets it.
 * Never waits: what finds no room is lost, and with it the prefetch thread's use of all channels. */
void foreread_send(int channel, const void *data, size_t bytes);
/* Sends a descriptor. The receiver opens the file itself: nothing but the file is shared. */
void foreread_send_fd(int channel, int fd);

/* pthread_create() for a thread that reads: its calls count with those of the thread that the prefetch
 * thread makes by prefetch_pthread_create() at the same place. Returns as pthread_create(). */
int foreread_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*f)(void *),
                            void *argument);

/* ---- the prefetch thread ----
 *
 * Descriptors and streams are real and read-only, so fstat(), fileno() and the like work on them. A file that is not a
 * regular one is not opened: its descriptor is a blind one, whose reads are assumed to be
 * complete, and whose data cannot be had. */

int prefetch_open(const char *path, int flags, ...);
int prefetch_openat(int folder, const char *path, int flags, ...);
int prefetch_creat(const char *path, mode_t mode);
int prefetch_dup(int fd);
int prefetch_dup2(int from, int to);
int prefetch_close(int fd);

/* Enters the program's descriptor into the table, unless foreread_receive_fd() has done so. Returns the
 * descriptor to go on with: the same number where it is free. */
int inform_open(int fd);
int inform_close(int fd);

/* The results of the real calls, without their data. */
ssize_t prefetch_read(int fd, size_t bytes);                                       /* [1] */
ssize_t prefetch_pread(int fd, size_t bytes, off_t offset);                        /* [1] */
ssize_t prefetch_readv(int fd, const struct iovec *parts, int count);              /* [1] */
ssize_t prefetch_preadv(int fd, const struct iovec *parts, int count, off_t offset); /* [1] */
off_t prefetch_lseek(int fd, off_t offset, int whence);

/* The real calls: later addresses depend on the data. */
ssize_t fetch_read(int fd, void *data, size_t bytes);                              /* [1] */
ssize_t fetch_pread(int fd, void *data, size_t bytes, off_t offset);               /* [1] */
ssize_t fetch_readv(int fd, const struct iovec *parts, int count);                 /* [1] */
ssize_t fetch_preadv(int fd, const struct iovec *parts, int count, off_t offset);  /* [1] */

/* The value of a call of the prefetch thread that the program does not count: FOREREAD_UNCOUNTED(fetch_read(fd, data, n)). */
#define FOREREAD_UNCOUNTED(...)                                                                    \
    (__extension__({                                                                               \
        __typeof__(__VA_ARGS__) foreread_value_ = (__VA_ARGS__);                                   \
        prefetch_uncount();                                                                        \
        foreread_value_;                                                                           \
    }))
void prefetch_uncount(void);

FILE *prefetch_fopen(const char *path, const char *mode);
FILE *prefetch_fdopen(int fd, const char *mode);
FILE *prefetch_freopen(const char *path, const char *mode, FILE *stream);
int prefetch_fclose(FILE *stream);

size_t prefetch_fread(FILE *stream, size_t size, size_t count);                    /* [1] */
/* EOF, or 0 for a character that is not known. */
int prefetch_getc(FILE *stream);                                                   /* [1] */
int prefetch_fseek(FILE *stream, long offset, int whence);
int prefetch_fseeko(FILE *stream, off_t offset, int whence);
long prefetch_ftell(FILE *stream);
off_t prefetch_ftello(FILE *stream);
void prefetch_rewind(FILE *stream);
int prefetch_fgetpos(FILE *stream, fpos_t *position);
int prefetch_fsetpos(FILE *stream, const fpos_t *position);
int prefetch_feof(FILE *stream);
int prefetch_ferror(FILE *stream);
void prefetch_clearerr(FILE *stream);

size_t fetch_fread(void *data, size_t size, size_t count, FILE *stream);           /* [1] */
int fetch_getc(FILE *stream);                                                      /* [1] */
int fetch_ungetc(int character, FILE *stream);
char *fetch_fgets(char *line, int bytes, FILE *stream);                            /* [1] */
ssize_t fetch_getline(char **line, size_t *bytes, FILE *stream);                   /* [1] */
ssize_t fetch_getdelim(char **line, size_t *bytes, int delimiter, FILE *stream);   /* [1] */
int fetch_fscanf(FILE *stream, const char *format, ...)                            /* [1] */
    __attribute__((format(scanf, 2, 3)));
int fetch_vfscanf(FILE *stream, const char *format, va_list arguments)             /* [1] */
    __attribute__((format(scanf, 2, 0)));

/* Maps privately, whatever the flags say. Bytes whose values are needed are read in place; the
 * others are announced. */
void *prefetch_mmap(void *address, size_t bytes, int protection, int flags, int fd, off_t offset);
void prefetch_touch(const void *address, size_t bytes);                            /* [1] */
/* What the program looks at before its next call, by loads of its own: `bytes` at an address, or at
 * `count` addresses that are as far apart as the first two. Not counted. */
void prefetch_load(const void *address, size_t bytes);
void prefetch_loads(const void *first, const void *second, size_t bytes, size_t count);
/* The program's foreread_call() where it reads nothing: by these it is known how far its loads have come. */
void prefetch_call(void);                                                          /* [1] */
int prefetch_munmap(void *address, size_t bytes);

/* Waits for what the program sends on this channel. Returns the bytes sent, of which no more than
 * `bytes` are stored. Where it was lost, the calling prefetch thread ends. */
size_t foreread_receive(int channel, void *data, size_t bytes);
/* The file of a descriptor that the program sent, at the program's offset, opened for this process; in
 * the table already. */
int foreread_receive_fd(int channel);

int prefetch_pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*f)(void *),
                            void *argument);
/* What the program's exit() is to the prefetch thread: its end. What it has announced is still fetched. */
void prefetch_exit(int status) __attribute__((noreturn));

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif /* FOREREAD_PREEXEC_H */
