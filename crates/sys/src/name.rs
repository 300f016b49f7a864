//! Lookups of names: afterwards the directories on the way and the inode are in memory. The target is not opened.
//!
//! Invariants: no symbolic link is followed, wherever in the path; nothing but a directory is opened, and that only to read its
//! entries; no automount point is triggered, wherever in the path; nothing is found that the user may not look up.
//!
//! Data flow: path → found target.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{FileType, Mode, OFlags, RawDir, openat};
use rustix::io::Errno;

use crate::thread::waits;
use crate::way::{self, Links};

/// Bytes of directory entries per call: the C library uses 32 KiB.
const ENTRIES: usize = 32 << 10;

/// The target of a path.
#[derive(Debug)]
pub struct NameLookup {
    fd: OwnedFd,
    /// True if this thread waited for it. The inode of an unused name may be in a block that is in memory; then nobody waits.
    pub was_waited_for: bool,
}

impl NameLookup {
    /// Looks a path up.
    ///
    /// # Errors
    /// As [`way::find`].
    pub fn find(path: &Path) -> io::Result<Self> {
        if let Some(fd) = way::in_memory(path, Links::Refused) {
            return Ok(Self {
                fd: fd?,
                was_waited_for: false,
            });
        }
        let before = waits();
        Ok(Self {
            fd: way::by_names(path, Links::Refused)?,
            was_waited_for: waits() != before,
        })
    }

    /// Reads up to `most` entries of the directory. True if this thread waited for them.
    ///
    /// # Errors
    /// `ENOTDIR` if it is no directory; `EACCES` if the user may not read it.
    pub fn list(&self, most: usize) -> io::Result<bool> {
        let before = waits();
        let stat = rustix::fs::fstat(&self.fd)?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::Directory {
            return Err(Errno::NOTDIR.into());
        }
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::NONBLOCK;
        let open = |flags| openat(&self.fd, c".", flags, Mode::empty());
        let directory = match open(flags | OFlags::NOATIME) {
            // Only the owner may leave the access time alone.
            Err(Errno::PERM) => open(flags)?,
            opened => opened?,
        };
        let mut room = [MaybeUninit::uninit(); ENTRIES];
        let mut entries = RawDir::new(&directory, &mut room);
        for _ in 0..most {
            if entries.next().transpose()?.is_none() {
                break;
            }
        }
        Ok(waits() != before)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn what_is_not_a_directory_is_looked_up_and_not_opened() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let why = NameLookup::find(&root.join("none")).unwrap_err();
        assert_eq!(why.kind(), io::ErrorKind::NotFound);
        // Whoever opens it waits for a writer.
        let fifo = root.join("fifo");
        rustix::fs::mknodat(rustix::fs::CWD, &fifo, FileType::Fifo, Mode::RUSR, 0).unwrap();
        let place = NameLookup::find(&fifo).unwrap();
        assert_eq!(
            place.list(10).unwrap_err().raw_os_error(),
            Some(libc::ENOTDIR)
        );
        assert!(!NameLookup::find(&fifo).unwrap().was_waited_for);
        assert!(NameLookup::find(&root).unwrap().list(1).is_ok());
    }

    #[test]
    fn no_link_is_followed_wherever_it_is() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        std::fs::create_dir(root.join("real")).unwrap();
        std::fs::write(root.join("real/file"), b"x").unwrap();
        symlink(root.join("real"), root.join("link")).unwrap();
        let through = NameLookup::find(&root.join("link/file")).unwrap_err();
        assert_eq!(through.raw_os_error(), Some(libc::ELOOP));
        assert!(NameLookup::find(&root.join("real/file")).is_ok());
        // A link itself can be looked up, and is no directory to be listed.
        let link = NameLookup::find(&root.join("link")).unwrap();
        assert!(link.list(10).is_err());
    }
}
