//! The traces of other tools, read as foreread's own accesses: who, which file, which operation, where, how much, when
//! and for how long.
//!
//! Formats, one per file: `strace -f -ttt` text ([`strace`]), fio iologs ([`fio`]), Darshan DXT, as the text of darshan-dxt-parser
//! ([`dxt`]) and as binary logs ([`darshan`]), the text of recorder2text ([`recorder`]), and foreread's own records ([`record`]).
//! docs/traces.md says which parts of each are read.
//!
//! Invariant: a trace is read once, front to back, in memory that does not grow with its length: only its names and, for strace, the open
//! descriptors are kept, both up to a limit. An unreadable part becomes a [`Problem`], which names the file, the line or byte and the
//! value. Everything before it and, in a text, after it is valid.
//!
//! Data flow: [`Trace::open`] → decompression → format detected from the content → [`Trace::next`], one access at a time. [`Names`] is
//! filled on the way, and [`Trace::problems`] has the faults.

#![forbid(unsafe_code)]

mod darshan;
mod dxt;
mod fields;
mod fio;
mod input;
mod lines;
mod names;
mod problem;
mod record;
mod recorder;
mod strace;
mod trace;

pub use names::{Names, Who, WhoId};
pub use problem::{Problem, Problems, TraceError, TracePlace};
pub use trace::{Format, Trace};

use foreread_plan::{Extent, FileId};

/// The operation of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Operation {
    /// Opens a file.
    Open,
    /// Reads bytes.
    Read,
    /// Writes bytes.
    Write,
    /// Maps bytes, without reading them.
    Map,
    /// The start of a program, whose executable is the file.
    Start,
}

impl Operation {
    /// True if the access has bytes: an open and a program's start have none.
    pub const fn has_bytes(self) -> bool {
        !matches!(self, Operation::Open | Operation::Start)
    }
}

impl Operation {
    /// The word that reports use.
    pub const fn name(self) -> &'static str {
        match self {
            Operation::Open => "open",
            Operation::Read => "read",
            Operation::Write => "write",
            Operation::Map => "map",
            Operation::Start => "start",
        }
    }
}

/// An access of a foreign trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// The process, thread or rank.
    pub who: WhoId,
    /// The file.
    pub file: FileId,
    /// The operation.
    pub operation: Operation,
    /// The bytes concerned: those that the call returned, where the trace says so, else those it asked for.
    pub extent: Extent,
    /// When the call began, in ns of the trace's own clock; 0 in a trace without times.
    pub start: u64,
    /// Duration of the call, in ns; `None` if the trace does not have it.
    pub took: Option<u64>,
    /// Bytes of the trace that describe the access: of its line or lines, or of its binary record.
    pub raw: u32,
}
