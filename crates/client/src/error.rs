//! Errors, with the file and the value at fault.

use std::io;
use std::path::PathBuf;

use foreread_sources::RegionId;

use crate::{FileId, Flags};

/// A refused call. It never affects the program's own reads.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The client belongs to the parent of this process; threads do not survive a fork.
    #[error("the client was made by the parent of this process: a child has to make its own")]
    Forked,
    /// A file cannot be opened, or is not a regular file.
    #[error("{}: {why}", path.display())]
    File {
        /// The file, or `descriptor N`.
        path: PathBuf,
        /// Why: part of the message, and so no source of the error.
        why: io::Error,
    },
    /// No file of this client has this number.
    #[error("the client knows no file number {}", .0.0)]
    UnknownFile(FileId),
    /// No region of this client has this number.
    #[error("the client knows no region number {}", .0.0)]
    UnknownRegion(RegionId),
    /// A region that ends before it begins, or holds nothing.
    #[error("region {start}..{end} is empty")]
    EmptyRegion {
        /// First byte.
        start: u64,
        /// One past the last.
        end: u64,
    },
    /// `SET` and `APPEND` together.
    #[error("flags {:#x} contradict each other", .0.bits())]
    Flags(Flags),
    /// The list is complete and has no entry with this number.
    #[error("entry {number} is past the list's end, {end}")]
    NoEntry {
        /// The number given.
        number: u64,
        /// One past the last number.
        end: u64,
    },
    /// The client was closed by another owner.
    #[error("the client has ended")]
    Ended,
    /// The session's threads cannot be started.
    #[error("cannot start the prefetching threads: {0}")]
    Threads(io::Error),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_is_printed_once() {
        let error = Error::File {
            path: "gone".into(),
            why: io::Error::from_raw_os_error(2),
        };
        assert!(error.to_string().contains("No such file"), "{error}");
        assert!(std::error::Error::source(&error).is_none());
    }
}
