//! What happens in the program, as an observer tells it and sources see it.

use std::fmt;
use std::num::ParseIntError;
use std::str::FromStr;

use crate::{FileId, Kind, Sequence, ThreadId};

/// What a file is for, whatever its name is this time: files of one role are expected to be read alike. 0 is unknown.
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

/// One thing that happened. Files have one number in a session, whoever tells of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seen {
    /// A file is used for the first time, or its size has changed.
    File {
        /// The file.
        file: FileId,
        /// Its size, in bytes.
        size: u64,
        /// Whether this run has created it or written to it.
        written: bool,
    },
    /// The kernel reads none of a file ahead: what is read of it does not stay in the page cache.
    Unaided {
        /// The file.
        file: FileId,
    },
    /// What kind of file a file is.
    Role {
        /// The file.
        file: FileId,
        /// Its role by its name.
        role: Role,
        /// Its role by how many of its kind the program has opened before.
        turn: Role,
    },
    /// A thread has used a name: it has opened the file, looked at its inode or read the directory.
    Named {
        /// The file.
        file: FileId,
        /// How: one of the kinds that [name](Kind::names).
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
