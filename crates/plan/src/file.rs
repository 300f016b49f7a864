//! The identity of a file at the time of its observation.

use std::path::PathBuf;

/// A file's number within one record or session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct FileId(pub u32);

/// Identifies a file, so that a later run can check whether it is still the same.
///
/// A file that was read is a regular file. A file that was only named may be anything with an inode: a directory, a symbolic link (with its
/// own path, not its target's), a pipe, a device.
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
    /// True if the recorded run created or truncated the file itself: it is in memory because it was just written, and need not be
    /// prefetched.
    pub written: bool,
    /// The order of the recorded run's reads.
    pub advice: Advice,
    /// True if it is a directory.
    pub directory: bool,
}

/// The best advice to the kernel about the order in which a file is read, in the terms of posix_fadvise(2).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Advice {
    /// No advice.
    #[default]
    Normal,
    /// Read from front to back, nearly all of it by calls: the kernel's read-ahead can be doubled.
    Sequential,
    /// In an order that the kernel's read-ahead cannot serve, and would only fetch too much for.
    Random,
    /// The program drops the file's pages from memory, or reads only resident pages. Fetching would change its behaviour, so nothing is
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

    /// True if both describe one file in one state. A directory is the same whatever its entries are.
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
