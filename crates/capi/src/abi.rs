//! The types and constants of `foreread.h`.
//!
//! Invariant: what is public here is the C interface: `include/foreread.h` is this file and
//! [`crate::calls`] in C, comments included, and a test fails when they part. A structure that may
//! grow begins with its size.

use std::ffi::{c_char, c_int, c_uint, c_void};

use ::foreread_client::Stats;

/// The entry is marked: the callback is told of the most recent marked access.
pub const FOREREAD_MARKED: c_uint = 1;

/// Replace the list; numbering starts at 0. The default when neither this nor FOREREAD_APPEND is
/// given.
pub const FOREREAD_SET: c_uint = 1;
/// Add at the end; numbering goes on.
pub const FOREREAD_APPEND: c_uint = 2;
/// Empty the list first. With no entries: stop prefetching.
pub const FOREREAD_CLEAR: c_uint = 4;
/// The list is complete for now: when it runs out, the callback is asked for more.
pub const FOREREAD_DONE: c_uint = 8;

/// Keep in memory what the program has read: never drop pages behind it.
pub const FOREREAD_KEEP: c_uint = 1;
/// Each foreread_reading() is followed by foreread_read_done(), which tells how long the read took.
pub const FOREREAD_TIMED: c_uint = 2;
/// Fetch what is read first in a first short pass over a disk with a moving head, and the rest in longer ones after it:
/// right for a program that computes between its reads. Without, all that the budget has room for is one pass,
/// which takes the disk least time.
pub const FOREREAD_PASSES: c_uint = 4;
/// Hold no file open longer than it takes to ask for its pages: for a process that fetches for another, which may unmount,
/// lease or delete a file that it has closed. A file is opened by its path each time; one that has been renamed or
/// deleted is not fetched any more.
pub const FOREREAD_BRIEF: c_uint = 8;

/// Pseudo-descriptors, which foreread_register_file() returns, begin here.
pub const FOREREAD_FIRST_FILE: c_int = 1 << 30;

/// A client: one list, its regions, its callback. Opaque; a value that is none is recognised
/// and refused with -EINVAL.
#[allow(non_camel_case_types)]
pub struct foreread_client {
    _opaque: [u8; 0],
}

/// One coming access.
#[allow(non_camel_case_types)]
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct foreread_entry {
    /// A descriptor for which the client has a region, or a pseudo-descriptor of its.
    pub fd: c_int,
    /// 0 or FOREREAD_MARKED.
    pub flags: c_uint,
    /// First byte.
    pub offset: u64,
    /// Bytes. 0 stands for the page that holds the offset when fetching, and for the byte
    /// at the offset when a read is looked up in the list.
    pub length: u64,
}

/// Choices for one client. Zero in a member means the default.
#[allow(non_camel_case_types)]
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct foreread_options {
    /// sizeof(foreread_options), as the program was compiled.
    pub struct_size: u64,
    /// Memory, in bytes, that may hold what is fetched and not yet read. It adapts from there.
    /// Default: by the memory that is free.
    pub budget: u64,
    /// Entries that the list may hold ahead of the program. Default: 1048576. Each takes 24 bytes
    /// of memory.
    pub capacity: u64,
    /// Path of a file to which a report is added, when the client ends, of where list and reality
    /// parted: counts, and the first differences. Default: the environment variable
    /// FOREREAD_CHECK, if it is set and may be believed; then no report. The string is copied. The file is made with
    /// mode 0600; one that is there already is added to only if it is a regular file of this user's, with one name.
    pub check: *const c_char,
    /// FOREREAD_KEEP, FOREREAD_TIMED, FOREREAD_PASSES, FOREREAD_BRIEF or several of them; or 0.
    pub flags: u64,
    /// With FOREREAD_PASSES, the process whose reads these are: one that is found to wait for most of the time has all
    /// in one pass after all. Default: the calling one.
    pub process: u64,
}

/// Where a client stands, or where it ended. Bytes are whole pages. What becomes of all bytes issued
/// is known at the end: foreread_finish_client() tells the closed account, in which issued is the sum
/// of the five after it.
#[allow(non_camel_case_types)]
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct foreread_stats {
    /// sizeof(foreread_stats), as the program was compiled: set it before the call.
    pub struct_size: u64,
    /// Entries accepted.
    pub accepted: u64,
    /// Entries ahead of the program now.
    pub ahead: u64,
    /// Reads in regions that were on the list, re-reads included.
    pub listed: u64,
    /// Reads in regions that were not.
    pub unlisted: u64,
    /// Entries the program passed over without reading them.
    pub skipped: u64,
    /// Reads of registered files outside the regions.
    pub outside: u64,
    /// Times the callback was called.
    pub callbacks: u64,
    /// Bytes fetched ahead of the program so far.
    pub issued: u64,
    /// Of those, bytes that were in memory when the program read them,
    pub useful: u64,
    /// bytes that were still on their way,
    pub late: u64,
    /// bytes that turned out never to be read,
    pub wasted: u64,
    /// bytes that were gone from memory again before they were read,
    pub evicted: u64,
    /// and bytes read along because they lay between others, and never read by the program.
    pub infill: u64,
}

impl From<Stats> for foreread_stats {
    /// Without its size. What nobody saw the program read, and what it missed, the C interface does not tell.
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

/// Asks the program for more of its list; see foreread_register_client().
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
