//! The identity of a file, as it was when it was observed.

use std::path::PathBuf;

/// A file's number within one record or session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FileId(pub u32);

/// What identifies a file, so that a later run can tell whether it is still the same one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileMeta {
    /// Absolute path.
    pub path: PathBuf,
    /// Device number (`st_dev`).
    pub dev: u64,
    /// Inode number.
    pub ino: u64,
    /// Size in bytes.
    pub size: u64,
    /// Modification time, in ns since the epoch.
    pub mtime_ns: i64,
    /// Whether the recorded run created or truncated the file itself: such a file
    /// is in memory because it was just written, and there is nothing to prefetch.
    pub written: bool,
    /// Whether the recorded run read it in an order the kernel's read-ahead cannot serve, and would
    /// only fetch too much for.
    pub random: bool,
}

impl FileMeta {
    /// What identifies the file and its content: two files, or two states of one, differ in it.
    pub fn facts(&self) -> (u64, u64, u64, i64) {
        (self.dev, self.ino, self.size, self.mtime_ns)
    }
}
