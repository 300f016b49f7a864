//! The traces of other tools, read as foreread's own accesses: who, which file, which operation, where, how much, when
//! and for how long.
//!
//! Formats, one a file: `strace -f -ttt` text ([`strace`]), fio iologs ([`fio`]), Darshan DXT, as the text of
//! darshan-dxt-parser ([`dxt`]) and as binary logs ([`darshan`]), the text of recorder2text ([`recorder`]), and foreread's
//! own records ([`record`]).
//! docs/traces.md says what is read of each.
//!
//! Invariant: a trace is read once, front to back, in memory that does not grow with its length: only the names in it
//! and, for strace, the open descriptors are kept, both up to a limit. What cannot be read becomes a [`Problem`], which
//! names the file, the line or byte and the value; what was read before it and, in a text, what comes after it stands.
//!
//! Data flow: [`Trace::open`] → compression undone → format recognised by its content → [`Trace::next`], an access at a
//! time; [`Names`] is filled on the way, and [`Trace::problems`] says what was wrong.

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

/// What an access does.
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
    /// Starts a program, whose executable the file is.
    Start,
}

impl Operation {
    /// Whether the access has bytes: an open and a program's start have none.
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

/// One access of a foreign trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access {
    /// Who made the access.
    pub who: WhoId,
    /// The file.
    pub file: FileId,
    /// What was done.
    pub operation: Operation,
    /// The bytes concerned: those that the call returned, where the trace says so, else those it asked for.
    pub extent: Extent,
    /// When the call began, in ns of the trace's own clock; 0 in a trace without times.
    pub start: u64,
    /// How long the call took, in ns; `None` where the trace does not say.
    pub took: Option<u64>,
    /// How many bytes of the trace describe the access: those of its line or lines, or of its binary record.
    pub raw: u32,
}
