//! Another user's view of the file system.
//!
//! Purpose: a service that runs as root and answers others tells each only facts that this user may see. Permissions are not derived from
//! modes and lists: the kernel decides, for a thread with that user's file privileges ([`User::look`]).
//!
//! Invariants: the thread keeps its real user, so the other user cannot send it signals. It ends with the examination, so no privileges can
//! be left behind. If the privileges cannot be assumed, nothing is examined.
//!
//! Data flow: a connected socket → [`User`] → [`User::look`].

use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::path::Path;

use rustix::fs::FileType;

use crate::checked;
use crate::way::{self, Links};

/// Groups of one user, at most: as many as Linux has.
const GROUPS: usize = 65_536;

/// The process at the other end of a socket.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    /// Process.
    pub pid: u32,
    /// Effective user.
    pub uid: u32,
    /// Effective group.
    pub gid: u32,
    /// The other groups.
    pub groups: Vec<u32>,
}

impl User {
    /// The process that connected this Unix socket, or listened on it, at that time.
    ///
    /// # Errors
    /// `ENOTCONN` for a socket that is not connected; before Linux 4.13 `ENOPROTOOPT`.
    pub fn at(socket: BorrowedFd<'_>) -> io::Result<Self> {
        let mut peer = libc::ucred {
            pid: 0,
            uid: 0,
            gid: 0,
        };
        let mut len = size_of::<libc::ucred>() as libc::socklen_t;
        // SAFETY: an open descriptor, and room for what is written.
        checked(unsafe {
            libc::getsockopt(
                socket.as_raw_fd(),
                libc::SOL_SOCKET,
                libc::SO_PEERCRED,
                (&raw mut peer).cast(),
                &raw mut len,
            )
        })?;
        let mut groups = vec![0_u32; 64];
        loop {
            let mut len = size_of_val(&groups[..]) as libc::socklen_t;
            // SAFETY: an open descriptor, and room for as much as is stated.
            let result = checked(unsafe {
                libc::getsockopt(
                    socket.as_raw_fd(),
                    libc::SOL_SOCKET,
                    libc::SO_PEERGROUPS,
                    groups.as_mut_ptr().cast(),
                    &raw mut len,
                )
            });
            let count = len as usize / size_of::<u32>();
            match result {
                Ok(_) => {
                    groups.truncate(count);
                    break;
                }
                Err(why) if why.raw_os_error() == Some(libc::ERANGE) && count <= GROUPS => {
                    groups.resize(count.max(groups.len() + 1), 0);
                }
                Err(why) => return Err(why),
            }
        }
        Ok(Self {
            pid: peer.pid.try_into().unwrap_or(0),
            uid: peer.uid,
            gid: peer.gid,
            groups,
        })
    }

    /// The result of `look` in a thread with this user's file privileges. Needs CAP_SETUID and CAP_SETGID.
    ///
    /// # Errors
    /// If the privileges cannot be assumed.
    pub fn look<T: Send>(&self, look: impl FnOnce() -> T + Send) -> io::Result<T> {
        std::thread::scope(|scope| {
            let looker = std::thread::Builder::new().spawn_scoped(scope, || {
                self.take_rights()?;
                Ok(look())
            })?;
            let gone = |_| Err(io::Error::other("the look was given up"));
            looker.join().unwrap_or_else(gone)
        })
    }

    /// Gives this thread, and no other, the user's rights to files.
    fn take_rights(&self) -> io::Result<()> {
        // SAFETY: numbers, and a list of as many groups as stated. By system call: the C library's functions change all threads.
        unsafe {
            let count = self.groups.len();
            checked(libc::syscall(
                libc::SYS_setgroups,
                count,
                self.groups.as_ptr(),
            ))?;
            libc::syscall(libc::SYS_setfsgid, self.gid);
            libc::syscall(libc::SYS_setfsuid, self.uid);
            // These calls never fail, and return the former value: no number is -1.
            let gid = libc::syscall(libc::SYS_setfsgid, -1);
            let uid = libc::syscall(libc::SYS_setfsuid, -1);
            if (uid as u32, gid as u32) != (self.uid, self.gid) {
                return Err(io::ErrorKind::PermissionDenied.into());
            }
        }
        Ok(())
    }
}

/// True if this thread may read the regular file at a path without symbolic links, and may list its directory: then the file's name reveals
/// nothing new.
pub fn may_know(path: &Path) -> bool {
    let Some(folder) = path.parent() else {
        return false;
    };
    let find = |path| way::find(path, Links::Refused);
    let (Ok(folder), Ok(file)) = (find(folder), find(path)) else {
        return false;
    };
    let regular = rustix::fs::fstat(&file)
        .is_ok_and(|about| FileType::from_raw_mode(about.st_mode) == FileType::RegularFile);
    regular && may_read(folder.as_fd()) && may_read(file.as_fd())
}

/// True if this thread may read the target of an open path.
fn may_read(place: BorrowedFd<'_>) -> bool {
    let flags = libc::AT_EMPTY_PATH | libc::AT_EACCESS;
    // SAFETY: an open descriptor, and an empty string of C. By system call: `access` of the C library asks for the real user.
    let result = unsafe {
        libc::syscall(
            libc::SYS_faccessat2,
            place.as_raw_fd(),
            c"".as_ptr(),
            libc::R_OK,
            flags,
        )
    };
    result == 0
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::os::unix::net::UnixStream;

    use super::*;

    /// The user without privileges.
    const NOBODY: u32 = 65_534;

    #[test]
    fn the_other_end_of_a_socket_is_known_with_its_groups() {
        let (one, _other) = UnixStream::pair().unwrap();
        let user = User::at(one.as_fd()).unwrap();
        assert_eq!(user.pid, std::process::id());
        assert_eq!(user.uid, rustix::process::geteuid().as_raw());
        let groups = rustix::process::getgroups().unwrap();
        let groups: Vec<u32> = groups.iter().map(|group| group.as_raw()).collect();
        assert_eq!(user.groups, groups);
        let file = fs::File::open("/").unwrap();
        assert!(User::at(file.as_fd()).is_err());
    }

    #[test]
    fn a_user_sees_what_the_kernel_lets_that_user_see() {
        if !rustix::process::geteuid().is_root() {
            eprintln!("skipped: not root");
            return;
        }
        let dir = tempfile::tempdir_in("/tmp").unwrap();
        let root = dir.path().canonicalize().unwrap();
        let mode =
            |path: &Path, mode| fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
        let file = |name: &str, folder, rights| {
            let path = root.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, "x").unwrap();
            mode(&path, rights);
            mode(path.parent().unwrap(), folder);
            path
        };
        let open = file("open/file", 0o755, 0o644);
        let secret = file("secret/file", 0o700, 0o644);
        let unlisted = file("unlisted/file", 0o711, 0o644);
        let unread = file("unread/file", 0o755, 0o600);
        let group = file("group/file", 0o755, 0o640);
        std::os::unix::fs::chown(&group, None, Some(4321)).unwrap();
        symlink(root.join("open"), root.join("link")).unwrap();
        mode(&root, 0o755);
        let nobody = User {
            pid: 1,
            uid: NOBODY,
            gid: NOBODY,
            groups: Vec::new(),
        };
        let know = |user: &User, path: &Path| user.look(|| may_know(path)).unwrap();
        assert!(know(&nobody, &open));
        for path in [&secret, &unlisted, &unread, &group] {
            assert!(!know(&nobody, path), "{}", path.display());
            assert!(may_know(path), "this thread has kept its rights");
        }
        assert!(!know(&nobody, &root.join("link/file")));
        assert!(!know(&nobody, &root.join("open")));
        assert!(!know(&nobody, Path::new("/")));
        let member = User {
            groups: vec![1, 4321],
            ..nobody
        };
        assert!(know(&member, &group) && !know(&member, &unread));
    }
}
