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

/**
 * Marks the entry: the callback is given the most recent marked access.
 */
#define FOREREAD_MARKED 1

/**
 * Replace the list; numbering starts at 0. The default if neither this nor FOREREAD_APPEND is
 * given.
 */
#define FOREREAD_SET 1

/**
 * Add at the end; numbering continues.
 */
#define FOREREAD_APPEND 2

/**
 * Empty the list first. With no entries: stop prefetching.
 */
#define FOREREAD_CLEAR 4

/**
 * The list is complete for now: when it runs out, the callback is called.
 */
#define FOREREAD_DONE 8

/**
 * Never drop pages that the program has passed.
 */
#define FOREREAD_KEEP 1

/**
 * Each foreread_reading() is followed by foreread_read_done(), which reports how long the read took.
 */
#define FOREREAD_TIMED 2

/**
 * On a disk with a moving head, fetch the first reads in a short first pass, and the others in longer passes: suits a
 * program that computes between its reads. Without this flag, everything that fits in the budget is one pass, which
 * takes the disk the least time.
 */
#define FOREREAD_PASSES 4

/**
 * Keep each file open only while its pages are requested: for a process that fetches for another one, which may unmount,
 * lease or delete files that it has closed. A file is opened by its path each time; after it was renamed or deleted,
 * nothing more is fetched from it.
 */
#define FOREREAD_BRIEF 8

/**
 * The lowest pseudo-descriptor that foreread_register_file() returns.
 */
#define FOREREAD_FIRST_FILE (1 << 30)

/**
 * A client: one list, its regions, its callback. Opaque. A value that is no client's is
 * recognised and refused with -EINVAL.
 */
typedef struct foreread_client foreread_client;

/**
 * Choices for one client. Zero in a member means the default.
 */
typedef struct {
  /**
   * sizeof(foreread_options) when the program was compiled.
   */
  uint64_t struct_size;
  /**
   * Limit of fetched, unread pages at the start, in bytes; the library adapts it later. Default:
   * three quarters of the free memory.
   */
  uint64_t budget;
  /**
   * Entries that the list may hold ahead of the program. Default: 1048576. Each takes at most 24
   * bytes of memory.
   */
  uint64_t capacity;
  /**
   * Path of a file to which a report is appended when the client ends: counts, and the first differences between the
   * list and the reads. Default: the environment variable FOREREAD_CHECK; if it is not set or is ignored (see
   * Environment), no report. The string is copied. The file is created with mode 0600. An existing file is used only
   * if it is a regular file of this user, with one name.
   */
  const char *check;
  /**
   * FOREREAD_KEEP, FOREREAD_TIMED, FOREREAD_PASSES, FOREREAD_BRIEF or several of them; or 0.
   */
  uint64_t flags;
  /**
   * With FOREREAD_PASSES, the process that makes the reads: while its processor time shows that it is I/O-bound,
   * everything is fetched in one pass. Default: the calling process.
   */
  uint64_t process;
} foreread_options;

/**
 * The program's callback, which extends the list; see foreread_register_client().
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
   * A descriptor for which the client has a region, or one of its pseudo-descriptors.
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
   * Bytes. 0 stands for the page that holds the offset when fetching, and for one byte when
   * matching.
   */
  uint64_t length;
} foreread_entry;

/**
 * Statistics of a client. Bytes are whole pages. The fate of every issued byte is known only at the
 * end: foreread_finish_client() returns the closed account, in which issued is the sum of the five
 * members after it.
 */
typedef struct {
  /**
   * sizeof(foreread_stats) when the program was compiled: set it before the call.
   */
  uint64_t struct_size;
  /**
   * Entries accepted, of all lists so far.
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
   * Reads in regions that were not on the list.
   */
  uint64_t unlisted;
  /**
   * Entries that the program passed and has not read.
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
   * Bytes fetched ahead of the program.
   */
  uint64_t issued;
  /**
   * Issued bytes that were in memory when the program read them.
   */
  uint64_t useful;
  /**
   * Issued bytes that were still on their way when the program read them.
   */
  uint64_t late;
  /**
   * Issued bytes of entries that the program never read.
   */
  uint64_t wasted;
  /**
   * Issued bytes that were gone from memory before the program read them.
   */
  uint64_t evicted;
  /**
   * Issued bytes between entries, fetched along with them, that the program never read.
   */
  uint64_t infill;
} foreread_stats;

/**
 * Registers a client.
 *
 * A client is one list of the program's next reads. A process may have several clients, and a
 * file may be in several.
 *
 * The callback, unless it is null, is called as callback(arg, marked_fd, marked_offset,
 * requested_fd, requested_offset)
 * - when a read in one of the client's regions is not on its list, and
 * - when a complete list (FOREREAD_DONE) runs out: at the read that matches its last entry.
 *
 * It is called on the reading thread, before the read, without any lock held. It may call any
 * function of this library, especially foreread_request_prefetching(), and may read: its own
 * reads are not matched with any list. Its arguments are the most recent marked access (-1 and -1
 * if there was none; it may be the requested one) and the requested access. One callback runs at
 * a time for each client: reads on other threads meanwhile neither call it nor wait for it. A
 * callback that supplies no entries is called again only after 1, 2, 4 and so on up to 1024 such
 * reads. A callback that never returns blocks only its own thread. It must end by returning, not
 * by longjmp(), pthread_exit() or a C++ exception. It is never called from a signal handler.
 *
 * @param client   receives the client.
 * @param options  null for the defaults.
 * @return 0, or
 *         -EFAULT if client is null;
 *         -EINVAL if options->struct_size is too small, a flag has no meaning, or process is no
 *         process number;
 *         -E2BIG if options has members that this version does not know, and they are not zero,
 *         or if options->struct_size is more than 4096;
 *         -EAGAIN if the threads cannot be started.
 */
int foreread_register_client(foreread_client **client,
                             const foreread_options *options,
                             foreread_callback callback,
                             void *arg);

/**
 * Ends a client: stops fetching, removes its regions, and writes its report if one was
 * requested.
 *
 * May be called from the callback. Calls and callbacks that are still running on the client finish
 * first: only then the fetching stops and the report is written. The callback's argument has to
 * outlive them. Fetched pages stay in memory.
 *
 * @return 0, -EINVAL (not a client), or -ECHILD.
 */
int foreread_unregister_client(foreread_client *client);

/**
 * Registers a file by its path, for programs whose reads are not intercepted (mmap, io_uring)
 * and that report them by foreread_reading() or foreread_at().
 *
 * @return a pseudo-descriptor of this client, FOREREAD_FIRST_FILE or more, which is valid only
 *         where this header expects a descriptor. The same file has the same one each time. Or
 *         -EFAULT (null path), -ENOENT, -EACCES and other errors of open(), -ENODEV (not a
 *         regular file), -EINVAL (not a client), -ECHILD.
 */
int foreread_register_file(foreread_client *client, const char *path);

/**
 * Registers a region: reads of these bytes through this descriptor are matched with the list.
 *
 * Regions may overlap. Entries may name any bytes of the file; the regions decide which reads are
 * matched and may call the callback. Reads through another descriptor of the file, one made by
 * dup() included, are not matched unless it is registered too. Closing the descriptor ends the
 * matching but not the prefetching, because the library opens the file itself. A new descriptor
 * with the same number is a different one.
 *
 * While most of the file's entries do not continue the one before, the library turns the kernel's
 * read-ahead off on the descriptor (POSIX_FADV_RANDOM). While the list reads 2 MiB or more of the
 * file from front to back, it doubles the read-ahead (POSIX_FADV_SEQUENTIAL). It restores the
 * read-ahead when the list has run out, the descriptor is closed, or the client or the program
 * ends. If the program itself gave such advice, the library gives none.
 *
 * @param fd     a descriptor of a regular file, open for reading, or a pseudo-descriptor.
 * @param start  first byte.
 * @param end    one past the last byte; UINT64_MAX for the rest of the file, however it grows.
 * @return the region's number, 0 or more, or
 *         -EINVAL if start is not below end, or if client is none;
 *         -EBADF if the descriptor is closed or not open for reading, or no pseudo-descriptor of
 *         this client;
 *         -ENODEV if it is not a regular file;
 *         -ERANGE if the region begins at or past the end of the file (in an empty file it may
 *         begin at 0);
 *         -EMFILE if the descriptor is 1048576 or more; -ECHILD. Or, if the library cannot open
 *         the file itself, -EACCES (this user may not), -ENOENT (there is no /proc) and other
 *         errors of open().
 */
int foreread_register_region(foreread_client *client,
                             int fd,
                             uint64_t start,
                             uint64_t end);

/**
 * Removes a region. When no descriptor of a file has a region left, and the file is not
 * registered by its path either, its entries are no longer fetched.
 *
 * @return 0, -ENOENT (no such region), -EINVAL (not a client), or -ECHILD.
 */
int foreread_unregister_region(foreread_client *client, int region);

/**
 * Passes on the list of the program's next reads, or more of it.
 *
 * Entries are numbered from 0 at each FOREREAD_SET; FOREREAD_APPEND continues the numbering. A
 * read is on the list if it shares a byte with an entry ahead, or with one of the last 4096
 * passed. The matched entry is passed then, with all before it. A match more than 4096 entries
 * ahead passes nothing until a second read, within 4096 entries after it, confirms it.
 *
 * Entries may repeat, overlap, or be in holes or past the end of their file: no page is fetched
 * twice, holes are not fetched, and only fetched bytes count as issued. An entry is fetched up to
 * the end that its file has when its turn comes. An entry that begins past the end uses no budget,
 * and is fetched once the file has grown that far, unless the program has passed it.
 *
 * @param entries  n entries, in the order of the reads; may be null if n is 0. They are copied.
 * @param flags    FOREREAD_SET (the default), FOREREAD_APPEND, FOREREAD_CLEAR, FOREREAD_DONE,
 *                 combined.
 * @return the number of accepted entries, the first ones. If it is less than n, the list is full:
 *         pass on the other entries later, or from the callback. Or
 *         -EFAULT if entries is null and n is not 0;
 *         -EINVAL if flags contradict each other or have no meaning, if an entry has flags without
 *         meaning or ends past 2^63 - 1, or if client is none;
 *         -EBADF if an entry's descriptor is closed, refers to another file by now, or has no
 *         region;
 *         -ENOMEM if there is no memory for them; -ECHILD. After an error the list is unchanged.
 */
int64_t foreread_request_prefetching(foreread_client *client,
                                     const foreread_entry *entries,
                                     size_t n,
                                     unsigned int flags);

/**
 * Reports that the program is at entry n: equivalent to reading it. For programs whose reads
 * are not intercepted. A report for every few entries is enough. An entry that is not listed
 * yet will be passed when it is.
 *
 * @return 0, -ERANGE (the list is complete and has no such entry), -EINVAL (not a client), or
 *         -ECHILD.
 */
int foreread_at(foreread_client *client, uint64_t n);

/**
 * Reports that the program is about to read these bytes. For reads that are not intercepted
 * (stdio, mmap, io_uring): call it just before each.
 *
 * @return 0, -EBADF (the client has no region for this descriptor), -EINVAL (not a client, or
 *         the bytes end past 2^63 - 1), or -ECHILD.
 */
int foreread_reading(foreread_client *client, int fd, uint64_t offset, uint64_t length);

/**
 * Reports that a read announced by foreread_reading() is over, and how long it took. The wait
 * shows the library how far ahead to fetch, and how much. For a client with FOREREAD_TIMED, fetched
 * bytes count as read only when the read is reported here. For other clients this call does nothing.
 *
 * @param length       bytes read, which may be fewer than announced.
 * @param nanoseconds  duration of the read, which ends now.
 * @return 0, -EBADF (the client has no region for this descriptor), -EINVAL (not a client, or
 *         the bytes end past 2^63 - 1), or -ECHILD.
 */
int foreread_read_done(foreread_client *client,
                       int fd,
                       uint64_t offset,
                       uint64_t length,
                       uint64_t nanoseconds);

/**
 * Writes a client's statistics to stats: as many members as its struct_size covers.
 *
 * @return 0, -EFAULT (null stats), -EINVAL (not a client, or struct_size too small), or -ECHILD.
 */
int foreread_get_stats(foreread_client *client,
                       foreread_stats *stats);

/**
 * Ends a client, and writes its final statistics to stats: as many members as its struct_size
 * covers. Their account is closed: each byte issued is useful, late, wasted, evicted or infill.
 *
 * Unlike after foreread_unregister_client(), the client has ended when this returns, even if other
 * threads are in calls on it.
 *
 * @return 0;
 *         -EFAULT (null stats), -EINVAL (not a client, or one that has ended, or struct_size too
 *         small), or -ECHILD: the client continues;
 *         -ENOTRECOVERABLE after an internal failure: the client has ended, and the account in
 *         stats may not be closed.
 */
int foreread_finish_client(foreread_client *client,
                           foreread_stats *stats);

/**
 * The meaning of a code, as a sentence without a full stop. Never null; not to be freed.
 */
const char *foreread_strerror(int code);

/**
 * The library's version, as in "1.2.3". Never null; not to be freed.
 */
const char *foreread_version(void);

#ifdef __cplusplus
}
#endif

#endif /* FOREREAD_H */
