//! An automount point of the kernel whose server receives the mount requests and never answers them.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};

/// An automount point.
pub struct AutomountPoint {
    /// Its path.
    pub root: PathBuf,
    /// The pipe with the kernel's mount requests.
    asked: OwnedFd,
    /// The server: nothing is mounted for its process group.
    server: Child,
}

impl AutomountPoint {
    /// Makes a point of this kind (`direct`: a directory; `indirect`: each name in a directory).
    ///
    /// # Errors
    /// The error of `mount(2)`.
    pub fn make(kind: &str, root: PathBuf) -> io::Result<Self> {
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
        })
    }

    /// True if the server receives a mount request within this time.
    pub fn is_asked(&self, within: Duration) -> bool {
        let wait = Timespec::try_from(within).expect("a short time");
        let mut polled = [PollFd::new(&self.asked, PollFlags::IN)];
        poll(&mut polled, Some(&wait)).expect("a pipe") > 0
    }
}

impl Drop for AutomountPoint {
    fn drop(&mut self) {
        let _ = unmount(&self.root, UnmountFlags::DETACH);
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}
