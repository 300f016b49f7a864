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
    /// How the recorded run read it.
    pub advice: Advice,
}

/// What the kernel is best told of the order in which a file is read, in the terms of posix_fadvise(2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Advice {
    /// Nothing.
    #[default]
    Normal,
    /// From front to back, nearly all of it by calls: the kernel's read-ahead can be twice as long.
    Sequential,
    /// In an order that the kernel's read-ahead cannot serve, and would only fetch too much for.
    Random,
}

impl FileMeta {
    /// Whether both tell of one file in one state, as far as its facts go.
    pub fn same_state(&self, other: &Self) -> bool {
        let facts = |meta: &Self| (meta.dev, meta.ino, meta.size, meta.mtime_ns);
        facts(self) == facts(other)
    }
}
