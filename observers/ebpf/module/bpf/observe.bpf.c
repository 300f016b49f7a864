/*
 * The kernel's side of the observer: reports the uses of files by the processes of one program.
 *
 * It observes system calls and the page cache's tracepoints. So it sees reads by any library, of 32-bit and 64-bit programs, and by
 * io_uring. It does not probe functions, because some kernels refuse such probes, and functions change between versions.
 *
 *   record.h     the reports
 *   kernel.h     the parts of the kernel's types that are used
 *   thread.h     the state of a thread, and sending events
 *   names.h      the names of files
 *   calls.h      system calls
 *   aio.h        reads by io_submit
 *   mapped.h     touches of mapped pages
 *   uring.h      reads by io_uring
 *   processes.h  the process tree
 *
 * Invariant: a thread that is not followed costs one lookup in a map at each tracepoint.
 *
 * Data flow: tracepoints -> ring. The supervisor sets `is_wanted`, `calls` and the first of `processes`; fork, exec and exit keep
 * `processes` up to date.
 */
#include "calls.h"
#include "mapped.h"
#include "uring.h"
#include "processes.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";
