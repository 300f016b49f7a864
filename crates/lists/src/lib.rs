//! Lists of reads in the formats of other tools: written for them, and read from them.
//!
//! | format | written for, read from | has |
//! | --- | --- | --- |
//! | `csv` | spreadsheets, scripts | all that a record has of an access |
//! | `jsonl` | scripts | the same, an object a line |
//! | `vmtouch` | `vmtouch -t -b FILE` | paths |
//! | `soci` | `soci convert --prefetch-files-json FILE` | paths, as one JSON array |
//! | `estargz` | `ctr-remote image convert --estargz-record-in FILE` | paths from the image's root, a JSON object each |
//! | `fio` | `fio --read_iolog=FILE` | paths and extents; `foreread-traces` reads it |
//!
//! docs/records.md has the columns and fields.
//!
//! Invariants: a list is written and read front to back, in memory that grows only with the number of its files. Every path that Linux
//! permits survives `csv` and `jsonl`. A file that a format cannot hold is named and left out. An unreadable line is a [`Fault`], and later
//! lines are valid.
//!
//! Data flow: [`Line`] → [`Writer`] → text; text → [`Lines`] → [`Line`].

#![forbid(unsafe_code)]

mod escape;
mod fault;
mod fio;
mod jsonl;
mod names;
mod reader;
mod table;
mod writer;

use std::fmt;
use std::path::PathBuf;

use foreread_plan::{Advice, Extent, Kind};

pub use fault::Fault;
pub use reader::Lines;
pub use writer::{Refused, Writer};

/// The formats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// `vmtouch -b`.
    Vmtouch,
    /// A JSON array of paths.
    Soci,
    /// The record file of `ctr-remote image optimize`.
    Estargz,
    /// A table.
    Csv,
    /// An iolog of fio, version 2.
    Fio,
    /// A JSON object a line.
    Jsonl,
}

impl Format {
    /// All of them.
    pub const ALL: [Format; 6] = [
        Format::Vmtouch,
        Format::Soci,
        Format::Estargz,
        Format::Csv,
        Format::Fio,
        Format::Jsonl,
    ];

    /// The name of the format on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Format::Vmtouch => "vmtouch",
            Format::Soci => "soci",
            Format::Estargz => "estargz",
            Format::Csv => "csv",
            Format::Fio => "fio",
            Format::Jsonl => "jsonl",
        }
    }

    /// The format with this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|format| format.name() == name)
    }

    /// True if a list of this format has whole files.
    pub const fn is_of_files(self) -> bool {
        matches!(self, Format::Vmtouch | Format::Soci | Format::Estargz)
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The state of a file in a list.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FileState {
    /// Size in bytes.
    pub size: Option<u64>,
    /// Modification time, in ns since the epoch.
    pub mtime_ns: Option<i64>,
}

/// A line of a list: an access.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// The file, as the list has it.
    pub path: PathBuf,
    /// The bytes; the whole file if the list has no extent.
    pub extent: Option<Extent>,
    /// The call; a touch, which has no order, if the list has no call.
    pub kind: Kind,
    /// When the call began, in ns since the run began.
    pub start_ns: u64,
    /// Duration in ns.
    pub took_ns: u64,
    /// Process and thread; 0 if the list has none.
    pub pid: u32,
    /// The thread.
    pub tid: u32,
    /// The file's state.
    pub state: FileState,
    /// The order of the file's reads.
    pub advice: Advice,
    /// True if the run wrote the file itself.
    pub written: bool,
}

impl Line {
    /// All of a file, and nothing else known.
    pub fn whole(path: PathBuf) -> Self {
        Self {
            path,
            extent: None,
            kind: Kind::Touch,
            start_ns: 0,
            took_ns: 0,
            pid: 0,
            tid: 0,
            state: FileState::default(),
            advice: Advice::Normal,
            written: false,
        }
    }
}

/// Marks of a file besides its state.
const WRITTEN: &str = "written";
const RANDOM: &str = "random";
const SEQUENTIAL: &str = "sequential";
const DROPPED: &str = "dropped";

/// The same of a line, in words between spaces.
fn marks(line: &Line) -> String {
    let advice = match line.advice {
        Advice::Normal => "",
        Advice::Random => RANDOM,
        Advice::Sequential => SEQUENTIAL,
        Advice::Dropped => DROPPED,
    };
    let written = if line.written { WRITTEN } else { "" };
    let space = if advice.is_empty() || written.is_empty() {
        ""
    } else {
        " "
    };
    format!("{advice}{space}{written}")
}

/// Enters the marks into a line.
fn mark(line: &mut Line, marks: &str) -> Result<(), String> {
    for word in marks.split_whitespace() {
        match word {
            WRITTEN => line.written = true,
            RANDOM => line.advice = Advice::Random,
            SEQUENTIAL => line.advice = Advice::Sequential,
            DROPPED => line.advice = Advice::Dropped,
            _ => return Err(format!("no mark is called {word:?}")),
        }
    }
    Ok(())
}

/// The kind of this name.
fn kind(name: &str) -> Result<Kind, String> {
    let found = Kind::ALL.into_iter().find(|kind| kind.name() == name);
    found.ok_or_else(|| format!("no call is called {name:?}"))
}

/// An extent that ends where an offset can.
fn extent(offset: u64, len: u64) -> Result<Extent, String> {
    let end = offset
        .checked_add(len)
        .filter(|&end| end <= i64::MAX as u64);
    end.map(|_| Extent::new(offset, len))
        .ok_or_else(|| format!("{len} bytes at {offset} end beyond 2^63"))
}
