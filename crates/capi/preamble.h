/*
 * foreread.h - application-directed prefetching: a program that knows its next reads passes on
 * their list, and finds their data in memory.
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
 * foreread_strerror() has a sentence for it. errno itself stays unchanged. No failure concerns
 * the program's own reads: it costs the speed-up and nothing else. Any call that returns a code
 * may also return -EDEADLK (see Signals) and -ENOTRECOVERABLE (the library has failed internally;
 * the program can continue without it).
 *
 * Reads. In a program that is linked with -lforeread (before -lc, as is usual), or that runs with
 * LD_PRELOAD=libforeread.so.1, these calls are intercepted: read, pread, readv, preadv and
 * preadv2, in all their variants. Their results and errno are the kernel's. A read of a descriptor
 * without a region costs one load and one comparison. A read that reaches past the end of the file
 * is matched up to the end. A read that begins at or past the end is not matched.
 *
 * Other reads are not intercepted: stdio (fread and the like call the C library's own read), C++
 * streams for the same reason, mmap, sendfile, splice, copy_file_range, asynchronous reads of the C
 * library (aio_read, lio_listio), of Linux (io_submit) and by io_uring, and direct system calls.
 * They gain as much if the program reports them: each by foreread_reading(), or every few by
 * foreread_at(), just before they are made. Reads that bypass the page cache (O_DIRECT) gain
 * nothing: entries of a descriptor that had O_DIRECT when it was registered are matched like
 * others, but not fetched.
 *
 * Threads. Every call may be made from any thread. The library's own threads block all signals and
 * have a separate descriptor table: the library never opens or closes a descriptor of a registered
 * file in the program's table, where closing one would drop the program's fcntl() locks. A thread
 * that is cancelled in a call or in the callback ends after it, at its next cancellation point.
 *
 * fork. A child has none of the library's threads. In it, calls on its parent's clients return
 * -ECHILD, and reads are not matched. The child may register clients of its own.
 *
 * Signals. A handler may read any descriptor. If it interrupted the library or fork(), or if its
 * thread runs a callback, its reads are not matched. A callback is never called from a handler. The
 * calls of this header are not for handlers: a handler that interrupted the library or fork() gets
 * -EDEADLK. A handler must not longjmp() out of the library.
 *
 * Memory. If a limit (RLIMIT_AS) leaves no room for a list of 4096 entries or more, the list is
 * refused with -ENOMEM. In any other shortage of memory the library ends the process by abort().
 *
 * Environment. With FOREREAD_CHECK=FILE, each client appends a report to FILE when it ends: the
 * differences between its list and the program's reads. The folder with the profiles of measured
 * devices is found by XDG_DATA_HOME or HOME. A program with more rights than the user who started it
 * (set-user-ID, file capabilities) ignores these and all other variables: that user must not choose
 * the files that it opens.
 */
#ifndef FOREREAD_H
#define FOREREAD_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif
