//! Errors of records, each with the file, the place and the value.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

/// Why a record could not be read, or not further.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The file could not be read at all.
    #[error("cannot read the record {}", path.display())]
    Io {
        /// The record.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// The file is something else than a record.
    #[error("{} is not a foreread record", path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
    },
    /// The record was written by a newer foreread.
    #[error(
        "the record {} has format version {version}; this foreread reads up to {}",
        path.display(),
        super::VERSION
    )]
    Future {
        /// The record.
        path: PathBuf,
        /// Its version.
        version: u16,
    },
    /// The record ends within its header, so its run is unknown.
    #[error("the record {} ends after {size} bytes, within its header", path.display())]
    Headless {
        /// The record.
        path: PathBuf,
        /// Its size in bytes.
        size: u64,
    },
    /// The record holds more than its reader takes.
    #[error("the record {} is too large to be read: {what} is {value}; {limit} is the limit", path.display())]
    Limit {
        /// The record.
        path: PathBuf,
        /// The name of the excessive value.
        what: &'static str,
        /// The value, as far as it was read.
        value: u64,
        /// The largest accepted value.
        limit: u64,
    },
    /// Bytes of the record have changed since they were written.
    #[error("the record {} is damaged at byte {offset}: {what}", path.display())]
    Damaged {
        /// The record.
        path: PathBuf,
        /// Start of the damaged part, in bytes from the start of the file.
        offset: u64,
        /// The damage.
        what: &'static str,
    },
}

/// Why a record could not be written, or not further.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum WriteError {
    /// A system error. Nothing further can be written to this record.
    #[error("cannot write the record")]
    Io(#[from] io::Error),
    /// The system refused, for a named file.
    #[error("cannot {action} {}", path.display())]
    File {
        /// The failed action.
        action: &'static str,
        /// The file it was done to.
        path: PathBuf,
        /// The system's reason.
        source: io::Error,
    },
    /// The record that is to be written anew cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The value is beyond the format's limit. The record remains usable.
    #[error("{what} is {value}; a record holds at most {limit}")]
    Limit {
        /// The name of the excessive value.
        what: &'static str,
        /// The value.
        value: u64,
        /// The limit.
        limit: u64,
    },
    /// An earlier write failed, so that the record's end is unknown.
    #[error("an earlier write to the record failed")]
    Broken,
}

/// The end of a record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ending {
    /// Its index, summary and trailer are whole.
    Complete,
    /// Its writer was interrupted: everything before byte `at` is usable.
    Truncated {
        /// Offset of the first byte that belongs to no whole frame.
        at: u64,
    },
    /// Some bytes have changed since they were written: the accesses before byte `at` are usable.
    Damaged {
        /// Offset of the first damaged frame.
        at: u64,
        /// The damage.
        why: &'static str,
    },
}
