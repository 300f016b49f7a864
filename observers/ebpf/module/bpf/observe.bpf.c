/*
 * The kernel's side of the observer: what the processes of one program do with files.
 *
 * It looks at system calls and at the page cache's own tracepoints, so it does not matter how a program comes there: by whose
 * library, with 32 or 64 bits, by io_uring. There are no probes of functions: some kernels refuse those, and they come and
 * go with versions.
 *
 *   record.h     what is reported
 *   kernel.h     the parts of the kernel's types that are used
 *   thread.h     what is kept, and how an event is sent
 *   names.h      what files are called
 *   calls.h      system calls
 *   aio.h        reads by io_submit
 *   mapped.h     touches of mapped pages
 *   uring.h      reads by io_uring
 *   processes.h  the process tree
 *
 * Invariant: a thread that is not followed costs one look-up, which comes before anything else.
 *
 * Data flow: tracepoints -> ring. `is_wanted`, `calls` and the first of `processes` come from the supervisor; fork and exit
 * keep `processes`.
 */
#include "calls.h"
#include "mapped.h"
#include "uring.h"
#include "processes.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";
