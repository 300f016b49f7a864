/*
 * foreread.h - application-directed prefetching: a program that knows which reads are coming
 * hands over the list, and its reads find their data in memory.
 *
 *     foreread_client *client;
 *     foreread_register_client(&client, NULL, NULL, NULL);
 *     foreread_register_region(client, fd, 0, UINT64_MAX);
 *     foreread_request_prefetching(client, entries, n, FOREREAD_SET);
 *     ... pread(fd, ...) as before ...
 *     foreread_unregister_client(client);
 *
 * The interface is libprefetch's (VanDeBogart, Frost, Kohler: Reducing Seek Overhead with
 * Application-Directed Prefetching, USENIX 2009); libprefetch.h has it under its own names.
 *
 * Units. Offsets, lengths and memory are in bytes. A region is [start, end).
 *
 * Errors. A call that fails returns a negative errno value, listed at each call;
 * foreread_strerror() has a sentence for it. errno itself is left alone. No failure ever concerns
 * the program's own reads: prefetching that fails costs the gain and nothing else. Any call may
 * also return -EDEADLK (see signals) and -ENOTRECOVERABLE (the library has failed within; go on
 * without it).
 *
 * Reads. A program that is linked with -lforeread (before -lc, as is usual), or that runs with
 * LD_PRELOAD=libforeread.so.1, has these intercepted: read, pread, readv, preadv and preadv2, in
 * all their variants. Their results and errno are the kernel's. A read of a descriptor in no
 * region costs a load and a comparison. A read counts as far as it lies inside the file; one that
 * begins at its end or past it does not count.
 *
 * Other means are not intercepted: stdio (fread and the like call the C library's own read), C++
 * streams for the same reason, mmap, sendfile, splice, copy_file_range, asynchronous reads of the C
 * library (aio_read, lio_listio), of Linux (io_submit) and by io_uring, and system calls made
 * directly. They gain as much: foreread_reading() or foreread_at() tells of each, or of every so
 * many, just before. Reads that bypass the page cache (O_DIRECT) gain nothing: entries of a
 * descriptor that was registered so are followed like others, and not fetched.
 *
 * Threads. Every call may be made from any thread. The library runs threads of its own, with all
 * signals blocked and with a descriptor table of their own: no descriptor of a registered file is
 * ever opened or closed in the program's table, so that its fcntl() locks stay. A thread that is
 * cancelled in a call or in the callback ends after it, at its next cancellation point.
 *
 * fork. A child has none of the library's threads. Calls on a client of its parent's return
 * -ECHILD, reads pass through untouched. The child may register clients of its own.
 *
 * Signals. A handler may read any descriptor. If it interrupted the library or fork(), or if its
 * thread runs a callback, its read passes through uncounted; a callback is never called from a
 * handler. The calls of this header are not for handlers: one that interrupted the library or
 * fork() is answered -EDEADLK. A handler must not longjmp() out of the library.
 *
 * Memory. A list of 4096 entries or more is refused with -ENOMEM where a limit (RLIMIT_AS) leaves
 * no room for it. A library that finds no memory otherwise ends the process, by abort().
 *
 * Environment. FOREREAD_CHECK=FILE adds to the file, when a client ends, where its list and the
 * program's reads parted. The folder of the measured devices' profiles is found by XDG_DATA_HOME or
 * HOME. A program that has more rights than whoever started it (set-user-ID, file capabilities)
 * ignores both, and all other variables: their user must not choose which files it opens.
 */
#ifndef FOREREAD_H
#define FOREREAD_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
