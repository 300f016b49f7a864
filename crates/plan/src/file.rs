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
    /// Whether both tell of one file in one state, as far as its facts go.
    pub fn same_state(&self, other: &Self) -> bool {
        let facts = |meta: &Self| (meta.dev, meta.ino, meta.size, meta.mtime_ns);
        facts(self) == facts(other)
    }
}
