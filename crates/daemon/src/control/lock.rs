//! One daemon at a time: a file that is locked while it runs. The kernel releases the lock when the process ends in any way, so none is
//! left behind.

use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;

use rustix::fs::{FlockOperation, Mode, OFlags, flock};

/// A lock that is held.
#[derive(Debug)]
pub struct Lock {
    _file: File,
}

/// Why a lock cannot be had.
#[derive(Debug)]
pub enum Held {
    /// By a process; its number is 0 if it has not written it yet.
    By(u32),
    /// The file cannot be used.
    Failed(std::io::Error),
}

impl Lock {
    /// Locks the file at `path`, which is created if it does not exist.
    ///
    /// # Errors
    /// If another process holds it.
    pub fn take(path: &Path) -> Result<Self, Held> {
        // For this user alone: whoever can open it could lock it.
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let flags = flags | OFlags::NONBLOCK;
        let file = rustix::fs::open(path, flags, Mode::RUSR | Mode::WUSR);
        let mut file = File::from(file.map_err(|why| Held::Failed(why.into()))?);
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(rustix::io::Errno::WOULDBLOCK) => {
                let mut pid = String::new();
                let _ = (&file).take(20).read_to_string(&mut pid);
                return Err(Held::By(pid.trim().parse().unwrap_or(0)));
            }
            Err(why) => return Err(Held::Failed(why.into())),
        }
        // The number is for people: without it, as on a full disk, the lock holds all the same.
        let _ = file.set_len(0);
        let _ = writeln!(file, "{}", std::process::id());
        Ok(Self { _file: file })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_is_told_who_holds_it_and_a_third_has_it_after() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("lock");
        std::fs::write(&path, "a longer line than a number").expect("a stale file");
        let first = Lock::take(&path).expect("free");
        match Lock::take(&path) {
            Err(Held::By(pid)) => assert_eq!(pid, std::process::id()),
            other => panic!("{other:?}"),
        }
        drop(first);
        Lock::take(&path).expect("free again");
        assert!(matches!(Lock::take(folder.path()), Err(Held::Failed(_))));
    }
}
