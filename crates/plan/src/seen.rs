//! What happens in the program, as an observer tells it and sources see it.

use crate::{FileId, Sequence, ThreadId};

/// What a file is for, whatever its name is this time: files of one role are expected to be read alike. 0 is unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Role(pub u64);

/// One thing that happened. Files have one number in a session, whoever tells of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seen {
    /// A file is met, or is of another size than when it was last told of.
    File {
        /// The file.
        file: FileId,
        /// Its size, in bytes.
        size: u64,
        /// Whether this run has created it or written to it.
        written: bool,
    },
    /// What kind of file a file is.
    Role {
        /// The file.
        file: FileId,
        /// Its role.
        role: Role,
    },
    /// A thread has opened a file.
    Open {
        /// The file.
        file: FileId,
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
