//! Problems of a trace: place, fault, consequence.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use foreread_plan::format::ReadError;
use thiserror::Error;

use crate::Format;
use crate::names::Full;

/// Problems that are kept word for word; the others are counted.
const KEPT: usize = 10;
/// Characters of a wrong value that a message quotes.
const QUOTED: usize = 40;

/// Why a trace cannot be read at all.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum TraceError {
    /// The file cannot be opened, or its beginning cannot be read.
    #[error("{}", path.display())]
    Io {
        /// The trace.
        path: PathBuf,
        /// The system's or the decompressor's reason.
        source: io::Error,
    },
    /// There is nothing in it.
    #[error("{}: the trace is empty", path.display())]
    Empty {
        /// The trace.
        path: PathBuf,
    },
    /// The content is of no known format.
    #[error(
        "{}: not a trace that is known ({}); it begins with {begins}",
        path.display(),
        Format::list()
    )]
    Unknown {
        /// The trace.
        path: PathBuf,
        /// The beginning of its content, quoted.
        begins: String,
    },
    /// The content is of a known format, in a variant that cannot be read.
    #[error("{}: {what}", path.display())]
    Unsupported {
        /// The trace.
        path: PathBuf,
        /// The variant, the value at fault, and possible remedies.
        what: String,
    },
    /// A record of foreread's own cannot be read; the error names the record.
    #[error(transparent)]
    Record(#[from] ReadError),
}

/// A place in a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TracePlace {
    /// In a text: the line, and the byte in it; both count from 1.
    Line {
        /// The line.
        line: u64,
        /// The byte in the line; 0 stands for the whole line.
        column: usize,
    },
    /// In a binary log: the byte, counted from 0 in the decompressed data of the records.
    Byte(u64),
}

impl fmt::Display for TracePlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TracePlace::Line { line, column: 0 } => write!(f, "line {line}"),
            TracePlace::Line { line, column } => write!(f, "line {line}, column {column}"),
            TracePlace::Byte(byte) => write!(f, "byte {byte} of the records"),
        }
    }
}

/// Something wrong with a trace that is read all the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The trace.
    pub path: PathBuf,
    /// The place.
    pub place: TracePlace,
    /// The fault, with its value, and the consequence.
    pub what: String,
    /// True if reading ended here.
    pub ended: bool,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, {}: {}", self.path.display(), self.place, self.what)
    }
}

/// The problems of a trace: the first ones, and their number.
#[derive(Debug, Default)]
pub struct Problems {
    kept: Vec<Problem>,
    count: u64,
}

impl Problems {
    /// The first problems, and the one that ended the reading, if there was one.
    pub fn kept(&self) -> &[Problem] {
        &self.kept
    }

    /// Number of problems.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The one that ended the reading before the end of the trace.
    pub fn end(&self) -> Option<&Problem> {
        self.kept.last().filter(|problem| problem.ended)
    }

    pub(crate) fn add(&mut self, path: &Path, place: TracePlace, what: String, ended: bool) {
        self.count += 1;
        if ended || self.kept.len() < KEPT {
            self.kept.push(Problem {
                path: path.to_path_buf(),
                place,
                what,
                ended,
            });
        }
    }
}

/// A decoder's fault; [`crate::Trace`] adds the file and the line.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    /// In a text: the byte in the line, from 1; 0 for the whole line.
    pub(crate) column: usize,
    pub(crate) what: String,
    pub(crate) then: Then,
}

/// The consequence of a [`Fault`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Then {
    /// The line is left out.
    Skip,
    /// The line is accepted unchanged.
    Keep,
    /// Reading ends.
    End,
}

impl Fault {
    pub(crate) fn new(column: usize, what: impl Into<String>) -> Self {
        Self {
            column,
            what: what.into(),
            then: Then::Skip,
        }
    }

    pub(crate) fn kept(column: usize, what: impl Into<String>) -> Self {
        Self {
            then: Then::Keep,
            ..Self::new(column, what)
        }
    }

    pub(crate) fn end(what: impl Into<String>) -> Self {
        Self {
            then: Then::End,
            ..Self::new(0, what)
        }
    }
}

impl From<Full> for Fault {
    fn from(Full: Full) -> Self {
        Fault::end(
            "there are more than 1048576 files or processes, or more than 128 MiB of their names, in the trace",
        )
    }
}

/// A value as messages quote it: on one line, and not too long.
pub(crate) fn quoted(value: &str) -> String {
    match value.char_indices().nth(QUOTED) {
        Some((end, _)) => format!("{:?}…", &value[..end]),
        None => format!("{value:?}"),
    }
}
