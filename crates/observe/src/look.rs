//! Observers' questions to the kernel about files and processes.
//!
//! Invariant: no device and no server is asked.

use std::fs;
use std::os::fd::{AsFd, BorrowedFd};
use std::path::{Path, PathBuf};

use foreread_sys::procfs::{self, Status};
use rustix::fs::{AtFlags, FileType, Mode, OFlags, StatxFlags, open, statx};
use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};

use crate::{File, Node};

/// The target of a path or a descriptor.
#[derive(Debug)]
pub enum Found {
    /// A regular file.
    Regular(File),
    /// A device, a pipe, a socket, a folder.
    Other,
    /// No file, or one that cannot be examined.
    Nothing,
}

/// Examines the file found at `path`.
pub fn look(there: BorrowedFd<'_>, path: &Path) -> Found {
    let flags = AtFlags::EMPTY_PATH | AtFlags::STATX_DONT_SYNC;
    let wanted = StatxFlags::TYPE | StatxFlags::INO | StatxFlags::SIZE;
    let Ok(about) = statx(there, c"", flags, wanted) else {
        return Found::Nothing;
    };
    if FileType::from_raw_mode(about.stx_mode.into()) != FileType::RegularFile {
        return Found::Other;
    }
    Found::Regular(File {
        path: path.to_path_buf(),
        node: Some(Node {
            device: rustix::fs::makedev(about.stx_dev_major, about.stx_dev_minor),
            inode: about.stx_ino,
            generation: 0,
            size: about.stx_size,
        }),
    })
}

/// True if there is no such process any more.
pub fn has_ended(pid: u32) -> bool {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    pid.is_none_or(|pid| test_kill_process(pid) == Err(Errno::SRCH))
}

/// A process's parent and its effective user.
pub fn about(pid: u32) -> Option<(u32, u32)> {
    let status = procfs::status(pid).ok()?;
    let status = Status(&status);
    // The real user, then the effective one.
    let user = std::str::from_utf8(status.words("Uid").nth(1)?).ok()?;
    Some((status.number("PPid")?, user.parse().ok()?))
}

/// The program that a process runs.
pub fn program(pid: u32) -> Option<File> {
    let link = PathBuf::from(format!("/proc/{pid}/exe"));
    let path = fs::read_link(&link).ok()?;
    // The kernel's own link leads to the file itself, by no path.
    let program = open(&link, OFlags::PATH | OFlags::CLOEXEC, Mode::empty()).ok()?;
    match look(program.as_fd(), &path) {
        Found::Regular(file) => Some(file),
        Found::Other | Found::Nothing => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_has_a_parent_a_user_and_a_program() {
        let (parent, uid) = about(std::process::id()).expect("it runs");
        assert_eq!(parent, std::os::unix::process::parent_id());
        assert_eq!(uid, rustix::process::geteuid().as_raw());
        assert_eq!(
            program(std::process::id()).expect("it runs").path,
            std::env::current_exe().expect("it runs")
        );
        assert!(!has_ended(std::process::id()));
        assert!(has_ended(0) && has_ended(u32::MAX));
    }
}
