//! Events in the program, as reported by an observer and shown to sources.

use std::fmt;
use std::num::ParseIntError;
use std::str::FromStr;

use crate::{FileId, Kind, Sequence, ThreadId};

/// The role of a file, independent of its name in one run: files of one role are expected to be read alike. 0 means unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Role(pub u64);

impl fmt::Display for Role {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{:016x}", self.0)
    }
}

impl FromStr for Role {
    type Err = ParseIntError;

    fn from_str(written: &str) -> Result<Self, ParseIntError> {
        u64::from_str_radix(written, 16).map(Self)
    }
}

/// An event. A file has one number in a session, for all observers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seen {
    /// A file is used for the first time, or its size has changed.
    File {
        /// The file.
        file: FileId,
        /// Its size, in bytes.
        size: u64,
        /// True if this run has created or written the file.
        written: bool,
    },
    /// The kernel does not read the file ahead: its pages do not stay in the page cache.
    Unaided {
        /// The file.
        file: FileId,
    },
    /// A file's role.
    Role {
        /// The file.
        file: FileId,
        /// Its role by its name.
        role: Role,
        /// Its role by how many of its kind the program has opened before.
        turn: Role,
    },
    /// A thread has used a name: it has opened the file, looked up its inode or listed the directory.
    Named {
        /// The file.
        file: FileId,
        /// The use: one of the kinds that [name](Kind::names).
        kind: Kind,
        /// The thread.
        thread: ThreadId,
    },
    /// A thread has read.
    Read(Sequence),
    /// A thread has replaced its program by another.
    Exec {
        /// The thread.
        thread: ThreadId,
    },
    /// A thread has ended.
    Exit {
        /// The thread.
        thread: ThreadId,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_role_is_written_and_read() {
        for role in [0, 1, 0xfedc_ba98_7654_3210, u64::MAX].map(Role) {
            assert_eq!(role.to_string().parse(), Ok(role));
        }
        assert!("role".parse::<Role>().is_err());
    }
}
