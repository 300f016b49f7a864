//! The types and constants of `foreread.h`.
//!
//! Invariant: the public items are the C interface: `include/foreread.h` is generated from this file and
//! [`crate::calls`], comments included, and a test compares them. A structure that may grow begins with
//! its size.

use std::ffi::{c_char, c_int, c_uint, c_void};

use ::foreread_client::Stats;

/// Marks the entry: the callback is given the most recent marked access.
pub const FOREREAD_MARKED: c_uint = 1;

/// Replace the list; numbering starts at 0. The default if neither this nor FOREREAD_APPEND is
/// given.
pub const FOREREAD_SET: c_uint = 1;
/// Add at the end; numbering continues.
pub const FOREREAD_APPEND: c_uint = 2;
/// Empty the list first. With no entries: stop prefetching.
pub const FOREREAD_CLEAR: c_uint = 4;
/// The list is complete for now: when it runs out, the callback is called.
pub const FOREREAD_DONE: c_uint = 8;

/// Never drop pages that the program has passed.
pub const FOREREAD_KEEP: c_uint = 1;
/// Each foreread_reading() is followed by foreread_read_done(), which reports how long the read took.
pub const FOREREAD_TIMED: c_uint = 2;
/// On a disk with a moving head, fetch the first reads in a short first pass, and the others in longer passes: suits a
/// program that computes between its reads. Without this flag, everything that fits in the budget is one pass, which
/// takes the disk the least time.
pub const FOREREAD_PASSES: c_uint = 4;
/// Keep each file open only while its pages are requested: for a process that fetches for another one, which may unmount,
/// lease or delete files that it has closed. A file is opened by its path each time; after it was renamed or deleted,
/// nothing more is fetched from it.
pub const FOREREAD_BRIEF: c_uint = 8;

/// The lowest pseudo-descriptor that foreread_register_file() returns.
pub const FOREREAD_FIRST_FILE: c_int = 1 << 30;

/// A client: one list, its regions, its callback. Opaque. A value that is no client's is
/// recognised and refused with -EINVAL.
#[allow(non_camel_case_types)]
pub struct foreread_client {
    _opaque: [u8; 0],
}

/// One coming access.
#[allow(non_camel_case_types)]
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct foreread_entry {
    /// A descriptor for which the client has a region, or one of its pseudo-descriptors.
    pub fd: c_int,
    /// 0 or FOREREAD_MARKED.
    pub flags: c_uint,
    /// First byte.
    pub offset: u64,
    /// Bytes. 0 stands for the page that holds the offset when fetching, and for one byte when
    /// matching.
    pub length: u64,
}

/// Choices for one client. Zero in a member means the default.
#[allow(non_camel_case_types)]
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct foreread_options {
    /// sizeof(foreread_options) when the program was compiled.
    pub struct_size: u64,
    /// Limit of fetched, unread pages at the start, in bytes; the library adapts it later. Default:
    /// three quarters of the free memory.
    pub budget: u64,
    /// Entries that the list may hold ahead of the program. Default: 1048576. Each takes at most 24
    /// bytes of memory.
    pub capacity: u64,
    /// Path of a file to which a report is appended when the client ends: counts, and the first differences between the
    /// list and the reads. Default: the environment variable FOREREAD_CHECK; if it is not set or is ignored (see
    /// Environment), no report. The string is copied. The file is created with mode 0600. An existing file is used only
    /// if it is a regular file of this user, with one name.
    pub check: *const c_char,
    /// FOREREAD_KEEP, FOREREAD_TIMED, FOREREAD_PASSES, FOREREAD_BRIEF or several of them; or 0.
    pub flags: u64,
    /// With FOREREAD_PASSES, the process that makes the reads: while its processor time shows that it is I/O-bound,
    /// everything is fetched in one pass. Default: the calling process.
    pub process: u64,
}

/// Statistics of a client. Bytes are whole pages. The fate of every issued byte is known only at the
/// end: foreread_finish_client() returns the closed account, in which issued is the sum of the five
/// members after it.
#[allow(non_camel_case_types)]
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct foreread_stats {
    /// sizeof(foreread_stats) when the program was compiled: set it before the call.
    pub struct_size: u64,
    /// Entries accepted, of all lists so far.
    pub accepted: u64,
    /// Entries ahead of the program now.
    pub ahead: u64,
    /// Reads in regions that were on the list, re-reads included.
    pub listed: u64,
    /// Reads in regions that were not on the list.
    pub unlisted: u64,
    /// Entries that the program passed and has not read.
    pub skipped: u64,
    /// Reads of registered files outside the regions.
    pub outside: u64,
    /// Times the callback was called.
    pub callbacks: u64,
    /// Bytes fetched ahead of the program.
    pub issued: u64,
    /// Issued bytes that were in memory when the program read them.
    pub useful: u64,
    /// Issued bytes that were still on their way when the program read them.
    pub late: u64,
    /// Issued bytes of entries that the program never read.
    pub wasted: u64,
    /// Issued bytes that were gone from memory before the program read them.
    pub evicted: u64,
    /// Issued bytes between entries, fetched along with them, that the program never read.
    pub infill: u64,
}

impl From<Stats> for foreread_stats {
    /// Without the structure's size. The C interface does not report bytes of unknown fate and missed bytes.
    fn from(stats: Stats) -> Self {
        let Stats {
            list,
            ahead,
            asked,
            ledger,
            ..
        } = stats;
        Self {
            struct_size: 0,
            accepted: list.accepted,
            ahead,
            listed: list.listed,
            unlisted: list.unlisted,
            skipped: list.skipped,
            outside: list.outside,
            callbacks: asked,
            issued: ledger.issued,
            useful: ledger.useful,
            late: ledger.late,
            wasted: ledger.wasted,
            evicted: ledger.evicted,
            infill: ledger.infill,
        }
    }
}

/// The program's callback, which extends the list; see foreread_register_client().
#[allow(non_camel_case_types)]
pub type foreread_callback = Option<
    unsafe extern "C" fn(
        arg: *mut c_void,
        marked_fd: c_int,
        marked_offset: i64,
        requested_fd: c_int,
        requested_offset: i64,
    ),
>;
