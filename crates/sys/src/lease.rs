//! Write leases: the holder of such a file must be notified before any other process opens it (fcntl(2), `F_SETLEASE`), by a signal that
//! ends most programs.
//!
//! Invariant: from the moment at which the program asks for a lease, no file under a write lease is opened. The kernel lists all leases,
//! which takes 6 µs to read, so the list is not read before a program has asked for one.
//!
//! Data flow: the observer of the program shows whether one was asked for ([`watch`]); each open of a file checks ([`is_held`]).

use std::os::fd::OwnedFd;
use std::sync::OnceLock;

use crate::text;

/// Returns true if the program may have taken leases.
type MayBeTaken = Box<dyn Fn() -> bool + Send + Sync>;

static TAKEN: OnceLock<MayBeTaken> = OnceLock::new();

/// From now on `may_be_taken` is called before each open, to find out whether the program may have taken leases. Only the first call of
/// this function has an effect.
pub fn watch(may_be_taken: impl Fn() -> bool + Send + Sync + 'static) {
    let _ = TAKEN.set(Box::new(may_be_taken));
}

/// True if a found file is under a write lease.
pub(crate) fn is_held(place: &OwnedFd) -> bool {
    if !TAKEN.get().is_some_and(|may_be_taken| may_be_taken()) {
        return false;
    }
    let (Ok(stat), Ok(locks)) = (rustix::fs::fstat(place), text::read("/proc/locks")) else {
        return true;
    };
    locks.lines().any(|line| is_of(line, stat.st_ino))
}

/// True if a line describes a write lease on a file with this inode number. The device is not compared: files of btrfs and of overlays have
/// other numbers there.
fn is_of(line: &str, ino: u64) -> bool {
    let mut words = line.split_ascii_whitespace().skip(1);
    let (Some("LEASE"), Some(_), Some(kind)) = (words.next(), words.next(), words.next()) else {
        return false;
    };
    let file = words.nth(1).and_then(|file| file.rsplit(':').next());
    kind != "READ" && file.and_then(|ino| ino.parse().ok()) == Some(ino)
}

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;

    #[test]
    fn write_leases_are_told_from_all_else_that_is_locked() {
        let lines = [
            ("1: LEASE  ACTIVE    WRITE 17 fe:00:42 0 EOF", true),
            ("2: LEASE  BREAKING  UNLCK 17 00:1c:42 0 EOF", true),
            ("3: LEASE  ACTIVE    READ  17 fe:00:42 0 EOF", false),
            ("4: LEASE  ACTIVE    WRITE 17 fe:00:421 0 EOF", false),
            ("5: POSIX  ADVISORY  WRITE 17 fe:00:42 0 EOF", false),
            ("6: -> FLOCK  ADVISORY  WRITE 17 fe:00:42 0 EOF", false),
            ("7: LEASE", false),
            ("", false),
        ];
        for (line, is_held) in lines {
            assert_eq!(is_of(line, 42), is_held, "{line}");
        }
    }

    #[test]
    fn a_file_under_a_write_lease_is_not_opened() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let holder = File::options().write(true).open(file.path()).unwrap();
        drop(file.reopen());
        let set = |kind: libc::c_int| {
            use std::os::fd::AsRawFd;
            // SAFETY: no memory is involved.
            unsafe { libc::fcntl(holder.as_raw_fd(), libc::F_SETLEASE, kind) }
        };
        let path = file.into_temp_path();
        if set(libc::F_WRLCK) != 0 {
            eprintln!("skipped: this file system has no leases");
            return;
        }
        // The signal that an open would cause ends this test.
        watch(|| true);
        let refused = crate::file::open_regular(&path).unwrap_err();
        assert_eq!(refused.kind(), std::io::ErrorKind::WouldBlock);
        assert_eq!(set(libc::F_UNLCK), 0);
        assert!(crate::file::open_regular(&path).is_ok());
    }
}
