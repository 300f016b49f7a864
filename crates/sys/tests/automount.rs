//! No look of foreread's has anything mounted: an automount point is not triggered at the end of a path, nor in its middle. By an
//! automount point of the kernel's, whose server is this test, and answers nobody.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::symlink;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use foreread_sys::way::{self, Links};
use foreread_sys::{file, name, user};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};
use tempfile::TempDir;

/// How long a look may take before it counts as one that waits for a mount.
const PATIENCE: Duration = Duration::from_secs(20);

/// An automount point.
struct Point {
    root: PathBuf,
    /// What the kernel asks the server to mount.
    asked: OwnedFd,
    /// Its process group is the server's, for which nothing is mounted.
    server: Child,
    _folder: TempDir,
}

impl Point {
    /// One of this kind (`direct`: a directory; `indirect`: each name in one), or why there is none.
    fn make(kind: &str) -> io::Result<Self> {
        let folder = tempfile::tempdir()?;
        let root = folder.path().canonicalize()?.join("point");
        std::fs::create_dir(&root)?;
        let mut server = Command::new("sleep")
            .arg("600")
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        let (asked, tell) = rustix::pipe::pipe()?;
        let (pipe, group) = (tell.as_raw_fd(), server.id());
        let options = format!("fd={pipe},pgrp={group},minproto=5,maxproto=5,{kind}");
        let options = std::ffi::CString::new(options)?;
        if let Err(why) = mount(
            "foreread",
            &root,
            "autofs",
            MountFlags::empty(),
            options.as_c_str(),
        ) {
            server.kill()?;
            server.wait()?;
            return Err(why.into());
        }
        Ok(Self {
            root,
            asked,
            server,
            _folder: folder,
        })
    }

    /// Whether the server is asked for a mount within this time.
    fn is_asked(&self, within: Duration) -> bool {
        let wait = Timespec::try_from(within).expect("a short time");
        let mut polled = [PollFd::new(&self.asked, PollFlags::IN)];
        poll(&mut polled, Some(&wait)).expect("a pipe") > 0
    }
}

impl Drop for Point {
    fn drop(&mut self) {
        let _ = unmount(&self.root, UnmountFlags::DETACH);
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

/// Does this in a thread; what came of it, or `None` where it waits.
fn within_patience<T: Send + 'static>(look: impl FnOnce() -> T + Send + 'static) -> Option<T> {
    let (tell, told) = mpsc::channel();
    std::thread::spawn(move || tell.send(look()));
    told.recv_timeout(PATIENCE).ok()
}

/// All the ways in which foreread looks at a path; whether each finds something.
fn looks(path: &Path) -> [bool; 6] {
    [
        name::Place::find(path).is_ok_and(|place| place.list(1).is_ok()),
        file::open_regular(path).is_ok(),
        file::open_exactly(path, 1, 1).is_ok(),
        way::find(path, Links::Followed).is_ok() && way::find(path, Links::Refused).is_ok(),
        way::real(path).is_ok(),
        user::may_know(path),
    ]
}

#[test]
fn no_automount_point_is_triggered_wherever_it_is_in_a_path() {
    for kind in ["indirect", "direct"] {
        let point = match Point::make(kind) {
            Ok(point) => point,
            Err(why) => {
                eprintln!("skipped: no automount point: {why}");
                return;
            }
        };
        let link = point.root.with_file_name("link");
        symlink(point.root.join("host"), &link).unwrap();
        for below in ["host", "host/file", "host/folder/file"] {
            for path in [point.root.join(below), link.join(below)] {
                let shown = path.display().to_string();
                let found = within_patience(move || looks(&path));
                assert!(
                    !point.is_asked(Duration::ZERO),
                    "{kind}: {shown} triggered it"
                );
                assert_eq!(found, Some([false; 6]), "{kind}: {shown}");
            }
        }
        // The point itself is found, and nothing is mounted on it.
        let root = point.root.clone();
        let found = within_patience(move || way::find(&root, Links::Refused).is_ok());
        assert_eq!(found, Some(true), "{kind}");
        assert!(!point.is_asked(Duration::ZERO), "{kind}: the point itself");
        // Anybody else does trigger it.
        let mut other = Command::new("cat")
            .arg(point.root.join("host/file"))
            .spawn()
            .unwrap();
        let is_asked = point.is_asked(PATIENCE);
        // What waits for a mount would hold up that the point is taken away.
        other.kill().unwrap();
        other.wait().unwrap();
        assert!(is_asked, "{kind}: nothing triggers it");
    }
}

#[test]
fn paths_lead_where_the_kernel_says_they_lead() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().canonicalize().unwrap();
    std::fs::create_dir_all(root.join("a/b")).unwrap();
    std::fs::write(root.join("a/b/file"), b"x").unwrap();
    symlink("b", root.join("a/near")).unwrap();
    symlink(root.join("a/near"), root.join("far")).unwrap();
    symlink("../far/../b/file", root.join("a/dots")).unwrap();
    symlink("round", root.join("round")).unwrap();
    for path in [
        "far/file",
        "a/dots",
        "a/./near/..//b/file",
        "a/none",
        "a/b/file/x",
        "round",
        "far",
        "a/near/",
    ] {
        let path = root.join(path);
        // As if nothing were in the kernel's cache of names.
        let by_names = way::by_names(&path, Links::Followed);
        let (found, kernel) = (way::real(&path), path.canonicalize());
        assert_eq!(by_names.is_ok(), kernel.is_ok(), "{}", path.display());
        match (found, kernel) {
            (Ok(found), Ok(kernel)) => assert_eq!(found, kernel),
            (found, kernel) => assert_eq!(
                found.unwrap_err().raw_os_error(),
                kernel.unwrap_err().raw_os_error(),
                "{}",
                path.display()
            ),
        }
    }
}
