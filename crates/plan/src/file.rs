//! The identity of a file, as it was when it was observed.

use std::path::PathBuf;

/// A file's number within one record or session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FileId(pub u32);

/// What identifies a file, so that a later run can tell whether it is still the same one.
///
/// What was read is a regular file. What was only named may be anything that has an inode: a directory, a symbolic link
/// (whose path is its own, not where it leads), a pipe, a device.
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
    /// Whether it is a directory.
    pub directory: bool,
}

/// The best advice to the kernel about the order in which a file is read, in the terms of posix_fadvise(2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Advice {
    /// Nothing.
    #[default]
    Normal,
    /// From front to back, nearly all of it by calls: the kernel's read-ahead can be twice as long.
    Sequential,
    /// In an order that the kernel's read-ahead cannot serve, and would only fetch too much for.
    Random,
    /// The program drops the file's pages from memory, or reads only resident pages. Fetching would change what it does, so nothing is
    /// fetched.
    Dropped,
}

impl FileMeta {
    /// A regular file that the run only read; `place` is its device and inode.
    pub fn regular(path: impl Into<PathBuf>, place: (u64, u64), size: u64, mtime_ns: i64) -> Self {
        Self {
            path: path.into(),
            dev: place.0,
            ino: place.1,
            size,
            mtime_ns,
            written: false,
            advice: Advice::Normal,
            directory: false,
        }
    }

    /// Whether both tell of one file in one state, as far as its facts go. A directory is the same one whatever is in it.
    pub fn same_state(&self, other: &Self) -> bool {
        let facts = |meta: &Self| (meta.dev, meta.ino, meta.size, meta.mtime_ns);
        let is_same = (self.dev, self.ino) == (other.dev, other.ino);
        let directories = self.directory && other.directory;
        directories && is_same || self.directory == other.directory && facts(self) == facts(other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_is_the_same_whatever_is_in_it_and_a_file_only_as_it_was() {
        let file = FileMeta::regular("/a", (1, 2), 10, 5);
        let changed = FileMeta {
            mtime_ns: 6,
            ..file.clone()
        };
        assert!(file.same_state(&file) && !file.same_state(&changed));
        let directory = |meta: &FileMeta| FileMeta {
            directory: true,
            ..meta.clone()
        };
        assert!(directory(&file).same_state(&directory(&changed)));
        assert!(!directory(&file).same_state(&file));
        let other = FileMeta {
            ino: 3,
            ..directory(&file)
        };
        assert!(!directory(&file).same_state(&other));
    }
}
