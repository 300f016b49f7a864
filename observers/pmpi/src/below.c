/* The functions by which the MPI library reads files, in front of the C library's.
 *
 * They stand behind those of the preload library, which therefore reports reads that are served here like any others. They stand
 * in front of the C library's for the whole program, but serve only threads that are in a reading call of MPI.
 *
 * The MPI libraries do not read by `read` and `readv`, so these are not here. A program that does so reads the file itself. */
#define _GNU_SOURCE
#include <aio.h>
#include <dlfcn.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

#include "cache.h"

#define OURS __attribute__((visibility("default")))

/* Defines a function in place of the C library's, which is `real` within it. `real` is looked up when this library is loaded,
 * because a later lookup would wait for the loader's lock. A call before that looks it up itself. */
#define STAND_BEFORE(result, name, parameters, ...)                                                                              \
    static void *_Atomic known_##name;                                                                                           \
    __attribute__((constructor)) static void find_##name(void) {                                                                 \
        atomic_store_explicit(&known_##name, dlsym(RTLD_NEXT, #name), memory_order_relaxed);                                     \
    }                                                                                                                            \
    OURS result name parameters;                                                                                                 \
    OURS result name parameters {                                                                                                \
        if (!atomic_load_explicit(&known_##name, memory_order_relaxed))                                                          \
            find_##name();                                                                                                       \
        result(*real) parameters = (result(*) parameters)atomic_load_explicit(&known_##name, memory_order_relaxed);              \
        __VA_ARGS__                                                                                                              \
    }

/* Serves the first part of a read from the cache, and reads the rest. */
#define PREAD(name)                                                                                                              \
    STAND_BEFORE(ssize_t, name, (int fd, void *buffer, size_t len, off_t offset), {                                              \
        if (!foreread_served || len == 0)                                                                                        \
            return real(fd, buffer, len, offset);                                                                                \
        size_t taken = foreread_cache_take(fd, buffer, len, offset);                                                             \
        if (taken == len)                                                                                                        \
            return (ssize_t)len;                                                                                                 \
        uint64_t begun = foreread_cache_missed(len - taken, offset + (off_t)taken);                                              \
        ssize_t rest = real(fd, (char *)buffer + taken, len - taken, offset + (off_t)taken);                                     \
        foreread_cache_read(begun);                                                                                              \
        if (rest < 0 && taken > 0)                                                                                               \
            return real(fd, buffer, len, offset);                                                                                \
        return rest < 0 ? rest : (ssize_t)taken + rest;                                                                          \
    })

PREAD(pread)
PREAD(pread64)

/* Serves a read into several buffers only if all of it is in the cache. */
#define PREADV(name)                                                                                                             \
    STAND_BEFORE(ssize_t, name, (int fd, const struct iovec *parts, int count, off_t offset), {                                  \
        if (!foreread_served)                                                                                                    \
            return real(fd, parts, count, offset);                                                                               \
        ssize_t taken = 0;                                                                                                       \
        int one = 0;                                                                                                             \
        for (; one < count; one++) {                                                                                             \
            if (foreread_cache_take(fd, parts[one].iov_base, parts[one].iov_len, offset + taken) != parts[one].iov_len)          \
                break;                                                                                                           \
            taken += (ssize_t)parts[one].iov_len;                                                                                \
        }                                                                                                                        \
        if (one == count && taken > 0)                                                                                           \
            return taken;                                                                                                        \
        size_t len = (size_t)taken;                                                                                              \
        for (; one < count; one++)                                                                                               \
            len += parts[one].iov_len;                                                                                           \
        uint64_t begun = foreread_cache_missed(len, offset);                                                                     \
        ssize_t moved = real(fd, parts, count, offset);                                                                          \
        foreread_cache_read(begun);                                                                                              \
        return moved;                                                                                                            \
    })

PREADV(preadv)
PREADV(preadv64)

/* True if the end of the read is not signalled. Signal 0 is no signal. */
static bool is_silent(const struct sigevent *event) {
    return event->sigev_notify == SIGEV_NONE || (event->sigev_notify == SIGEV_SIGNAL && event->sigev_signo == 0);
}

/* The C library reads in a thread of its own. A read that is served has ended when the call returns, as aio_error(3) shows. */
#define AIO_READ(name, block_type)                                                                                               \
    STAND_BEFORE(int, name, (struct block_type * block), {                                                                       \
        if (foreread_served && is_silent(&block->aio_sigevent) && block->aio_nbytes > 0 &&                                       \
            foreread_cache_take(block->aio_fildes, (void *)block->aio_buf, block->aio_nbytes, block->aio_offset) ==              \
                block->aio_nbytes) {                                                                                             \
            block->aio_lio_opcode = LIO_READ;                                                                                    \
            block->__error_code = 0;                                                                                             \
            block->__return_value = (ssize_t)block->aio_nbytes;                                                                  \
            return 0;                                                                                                            \
        }                                                                                                                        \
        return real(block);                                                                                                      \
    })

AIO_READ(aio_read, aiocb)
AIO_READ(aio_read64, aiocb64)
