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

/**
 * The entry is marked: the callback is told of the most recent marked access.
 */
#define FOREREAD_MARKED 1

/**
 * Replace the list; numbering starts at 0. The default when neither this nor FOREREAD_APPEND is
 * given.
 */
#define FOREREAD_SET 1

/**
 * Add at the end; numbering goes on.
 */
#define FOREREAD_APPEND 2

/**
 * Empty the list first. With no entries: stop prefetching.
 */
#define FOREREAD_CLEAR 4

/**
 * The list is complete for now: when it runs out, the callback is asked for more.
 */
#define FOREREAD_DONE 8

/**
 * Keep in memory what the program has read: never drop pages behind it.
 */
#define FOREREAD_KEEP 1

/**
 * Each foreread_reading() is followed by foreread_read_done(), which tells how long the read took.
 */
#define FOREREAD_TIMED 2

/**
 * Fetch what is read first in a first short pass over a disk with a moving head, and the rest in longer ones after it:
 * right for a program that computes between its reads. Without, all that the budget has room for is one pass,
 * which takes the disk least time.
 */
#define FOREREAD_PASSES 4

/**
 * Hold no file open longer than it takes to ask for its pages: for a process that fetches for another, which may unmount,
 * lease or delete a file that it has closed. A file is opened by its path each time; one that has been renamed or
 * deleted is not fetched any more.
 */
#define FOREREAD_BRIEF 8

/**
 * Pseudo-descriptors, which foreread_register_file() returns, begin here.
 */
#define FOREREAD_FIRST_FILE (1 << 30)

/**
 * A client: one list, its regions, its callback. Opaque; a value that is none is recognised
 * and refused with -EINVAL.
 */
typedef struct foreread_client foreread_client;

/**
 * Choices for one client. Zero in a member means the default.
 */
typedef struct {
  /**
   * sizeof(foreread_options), as the program was compiled.
   */
  uint64_t struct_size;
  /**
   * Memory, in bytes, that may hold what is fetched and not yet read. It adapts from there.
   * Default: by the memory that is free.
   */
  uint64_t budget;
  /**
   * Entries that the list may hold ahead of the program. Default: 1048576. Each takes 24 bytes
   * of memory.
   */
  uint64_t capacity;
  /**
   * Path of a file to which a report is added, when the client ends, of where list and reality
   * parted: counts, and the first differences. Default: the environment variable
   * FOREREAD_CHECK, if it is set and may be believed; then no report. The string is copied. The file is made with
   * mode 0600; one that is there already is added to only if it is a regular file of this user's, with one name.
   */
  const char *check;
  /**
   * FOREREAD_KEEP, FOREREAD_TIMED, FOREREAD_PASSES, FOREREAD_BRIEF or several of them; or 0.
   */
  uint64_t flags;
  /**
   * With FOREREAD_PASSES, the process whose reads these are: one that is found to wait for most of the time has all
   * in one pass after all. Default: the calling one.
   */
  uint64_t process;
} foreread_options;

/**
 * Asks the program for more of its list; see foreread_register_client().
 */
typedef void (*foreread_callback)(void *arg,
                                  int marked_fd,
                                  int64_t marked_offset,
                                  int requested_fd,
                                  int64_t requested_offset);

/**
 * One coming access.
 */
typedef struct {
  /**
   * A descriptor for which the client has a region, or a pseudo-descriptor of its.
   */
  int fd;
  /**
   * 0 or FOREREAD_MARKED.
   */
  unsigned int flags;
  /**
   * First byte.
   */
  uint64_t offset;
  /**
   * Bytes. 0 stands for the page that holds the offset when fetching, and for the byte
   * at the offset when a read is looked up in the list.
   */
  uint64_t length;
} foreread_entry;

/**
 * Where a client stands, or where it ended. Bytes are whole pages. What becomes of all bytes issued
 * is known at the end: foreread_finish_client() tells the closed account, in which issued is the sum
 * of the five after it.
 */
typedef struct {
  /**
   * sizeof(foreread_stats), as the program was compiled: set it before the call.
   */
  uint64_t struct_size;
  /**
   * Entries accepted.
   */
  uint64_t accepted;
  /**
   * Entries ahead of the program now.
   */
  uint64_t ahead;
  /**
   * Reads in regions that were on the list, re-reads included.
   */
  uint64_t listed;
  /**
   * Reads in regions that were not.
   */
  uint64_t unlisted;
  /**
   * Entries the program passed over without reading them.
   */
  uint64_t skipped;
  /**
   * Reads of registered files outside the regions.
   */
  uint64_t outside;
  /**
   * Times the callback was called.
   */
  uint64_t callbacks;
  /**
   * Bytes fetched ahead of the program so far.
   */
  uint64_t issued;
  /**
   * Of those, bytes that were in memory when the program read them,
   */
  uint64_t useful;
  /**
   * bytes that were still on their way,
   */
  uint64_t late;
  /**
   * bytes that turned out never to be read,
   */
  uint64_t wasted;
  /**
   * bytes that were gone from memory again before they were read,
   */
  uint64_t evicted;
  /**
   * and bytes read along because they lay between others, and never read by the program.
   */
  uint64_t infill;
} foreread_stats;

/**
 * Registers a client.
 *
 * A client is one list of coming reads. A process may have several, and a file may be in
 * several.
 *
 * The callback, unless it is null, is called as callback(arg, marked_fd, marked_offset,
 * requested_fd, requested_offset)
 * - when a read in one of the client's regions is not on its list, and
 * - when a list that was declared complete (FOREREAD_DONE) runs out: at the read that matches its
 *   last entry.
 *
 * It is called on the reading thread, before the read, without any lock held. It may call any
 * function of this library, foreread_request_prefetching() above all, and may read: its own
 * reads are not looked up in any list. It is told the most recent marked access (-1 and -1 if
 * there was none; it may be the one requested) and the access requested. One callback runs at a
 * time for each client: a read on another thread meanwhile neither calls nor waits. A callback
 * that supplies nothing is asked again after 1, 2, 4, and so on up to 1024 such reads. One that
 * never returns holds up its own thread only. It must return by returning: not by longjmp(), by
 * pthread_exit(), nor by a C++ exception. It is never called from a signal handler.
 *
 * @param client   where the client is put.
 * @param options  null for the defaults.
 * @return 0, or
 *         -EFAULT if client is null;
 *         -EINVAL if options->struct_size is too small or a flag has no meaning;
 *         -E2BIG if options has members that this version does not know, and they are not zero,
 *         or if options->struct_size is more than 4096;
 *         -EAGAIN if the threads cannot be started.
 */
int foreread_register_client(foreread_client **client,
                             const foreread_options *options,
                             foreread_callback callback,
                             void *arg);

/**
 * Ends a client: stops fetching, forgets its regions, and writes its report if one was asked
 * for.
 *
 * May be called from the callback. A callback that runs on another thread meanwhile runs on: its
 * argument has to outlive it. What was fetched stays in memory.
 *
 * @return 0, -EINVAL (not a client), or -ECHILD.
 */
int foreread_unregister_client(foreread_client *client);

/**
 * Registers a file by its path, for programs that read by means of their own (mmap, io_uring)
 * and tell by foreread_reading() or foreread_at().
 *
 * @return a pseudo-descriptor of this client, FOREREAD_FIRST_FILE or more, good wherever this
 *         header takes a descriptor, and for nothing else; the same again for the same file. Or
 *         -EFAULT (null path), -ENOENT, -EACCES and the like (as open() has it), -ENODEV (not a
 *         regular file), -EINVAL (not a client), -ECHILD.
 */
int foreread_register_file(foreread_client *client, const char *path);

/**
 * Registers a region: reads of these bytes through this descriptor count.
 *
 * Regions may overlap. The list may name any byte of the file; the regions say which reads are
 * looked up in it, and which call back. Reads through another descriptor of the file, dup()
 * included, do not count unless it is registered too. Closing the descriptor ends the counting,
 * not the prefetching: the library has its own opening of the file. The same number opened anew
 * is another descriptor.
 *
 * While the list reads the file in no order, the library turns the kernel's read-ahead off on
 * the descriptor (POSIX_FADV_RANDOM); while it reads it from front to back (2 MiB and more), twice as
 * long (POSIX_FADV_SEQUENTIAL). And back to what it was afterwards: when the list has run out, the
 * descriptor is closed, the client or the program ends. Never if the program gave such advice
 * itself.
 *
 * @param fd     a descriptor of a regular file, open for reading, or a pseudo-descriptor.
 * @param start  first byte.
 * @param end    one past the last; UINT64_MAX for the rest of the file, however it grows.
 * @return the region's number, 0 or more, or
 *         -EINVAL if start is not below end, or for what is not a client;
 *         -EBADF if the descriptor is closed or not open for reading, or no pseudo-descriptor of
 *         this client;
 *         -ENODEV if it is not a regular file;
 *         -ERANGE if the region begins at or past the end of the file (an empty file's may begin
 *         at 0);
 *         -EMFILE if the descriptor is 1048576 or more; -ECHILD. Or, where the library cannot open
 *         the file for itself, -EACCES (this user may not), -ENOENT (there is no /proc) and the
 *         like, as open() has it.
 */
int foreread_register_region(foreread_client *client,
                             int fd,
                             uint64_t start,
                             uint64_t end);

/**
 * Takes a region back. Without any region left of a descriptor, entries that name it are not
 * fetched any more.
 *
 * @return 0, -ENOENT (no such region), -EINVAL (not a client), or -ECHILD.
 */
int foreread_unregister_region(foreread_client *client, int region);

/**
 * Hands over the list of coming reads, or more of it.
 *
 * Entries are numbered: from 0 at each FOREREAD_SET, on and on by FOREREAD_APPEND. A read is on
 * the list if it shares a byte with an entry ahead, or with one of the last 4096 passed. An
 * entry that it matches is passed, and so are those before it.
 *
 * Entries that are duplicate, overlap, lie in holes or past the end of the file are no errors:
 * nothing is fetched twice, nor where there is nothing, and what is not fetched is not issued. An
 * entry is fetched as far as its file goes when its turn comes. One that begins past the end holds
 * no memory, and is fetched once the file has grown that far, unless the program has passed it.
 *
 * @param entries  n entries, in the order of the reads; may be null if n is 0. They are copied.
 * @param flags    FOREREAD_SET (the default), FOREREAD_APPEND, FOREREAD_CLEAR, FOREREAD_DONE,
 *                 combined.
 * @return how many entries were accepted, the first ones. Fewer than n: the list is full, and the
 *         rest is to be handed over later or from the callback. Or
 *         -EFAULT if entries is null and n is not 0;
 *         -EINVAL if flags contradict each other or have no meaning, if an entry has flags without
 *         meaning or ends past 2^63 - 1, or for what is not a client;
 *         -EBADF if an entry's descriptor is closed, has become another file's, or has no region;
 *         -ENOMEM if there is no memory for them; -ECHILD. The list is unchanged then.
 */
int64_t foreread_request_prefetching(foreread_client *client,
                                     const foreread_entry *entries,
                                     size_t n,
                                     unsigned int flags);

/**
 * Tells that the program is at entry n: the same as reading it. For programs whose reads are
 * not intercepted. Telling every so many entries is enough.
 *
 * @return 0, -ERANGE (the list is complete and has no such entry), -EINVAL (not a client), or
 *         -ECHILD.
 */
int foreread_at(foreread_client *client, uint64_t n);

/**
 * Tells that the program is about to read these bytes: what interception does by itself. For
 * reads that are not intercepted (stdio, mmap, io_uring), just before they are made.
 *
 * @return 0, -EBADF (the client has no region for this descriptor), -EINVAL (not a client, or
 *         the bytes end past 2^63 - 1), or -ECHILD.
 */
int foreread_reading(foreread_client *client, int fd, uint64_t offset, uint64_t length);

/**
 * Tells that a read announced by foreread_reading() is over, and how long it took. Of a client
 * registered with FOREREAD_TIMED, only then does the read count as made: whether it waited for the
 * device tells how far ahead to fetch, and how much. Otherwise it does nothing.
 *
 * @param length       bytes read, which may be fewer than announced.
 * @param nanoseconds  between the beginning of the read and its end, which is now.
 * @return 0, -EBADF (the client has no region for this descriptor), -EINVAL (not a client, or
 *         the bytes end past 2^63 - 1), or -ECHILD.
 */
int foreread_read_done(foreread_client *client,
                       int fd,
                       uint64_t offset,
                       uint64_t length,
                       uint64_t nanoseconds);

/**
 * Tells where a client stands. Of stats, as many members are set as its struct_size covers.
 *
 * @return 0, -EFAULT (null stats), -EINVAL (not a client, or struct_size too small), or -ECHILD.
 */
int foreread_get_stats(foreread_client *client,
                       foreread_stats *stats);

/**
 * Ends a client as foreread_unregister_client() does, and tells its last statistics with the
 * account closed: each byte issued is useful, late, wasted, evicted or infill. Of stats, as many
 * members are set as its struct_size covers.
 *
 * The client has ended when this returns, whoever else is in a call on it.
 *
 * @return 0;
 *         -EFAULT (null stats), -EINVAL (not a client, or one that has ended, or struct_size too
 *         small), or -ECHILD: a client goes on then;
 *         -ENOTRECOVERABLE if the library has failed within: the client has ended, and stats has
 *         of its account what was known.
 */
int foreread_finish_client(foreread_client *client,
                           foreread_stats *stats);

/**
 * What a code means, in a sentence without a full stop. Never null, never to be freed.
 */
const char *foreread_strerror(int code);

/**
 * The library's version, as in "1.2.3". Never null, never to be freed.
 */
const char *foreread_version(void);

#ifdef __cplusplus
}
#endif

#endif /* FOREREAD_H */
