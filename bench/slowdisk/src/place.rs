//! Claims the mount point of a slow disk, and releases it, even after a killed server.
//!
//! Invariant: processes claim mount points one after the other, under the lock of the state folder. Releasing goes from the top
//! down: file system, loop device, FUSE file.

use std::fs::File;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal};

use crate::error::{At, Error};
use crate::state::{self, Mounted, STATES, absolute, folder, start_of};
use crate::{Options, block, fs};

/// Unmounts the slow disk at `dir`, whether its server is alive or dead. Fails without any change while programs use the disk.
pub fn unmount(dir: &Path) -> Result<(), Error> {
    let mounted = Mounted::find(dir)?;
    // A disk without a server is useless, so its users are not waited for.
    release(&mounted, !mounted.is_alive())
}

/// Checks that the disk can be created, and claims its mount point. Cleans up after a killed server.
pub(crate) fn claim(options: &Options) -> Result<Mounted, Error> {
    if !rustix::process::geteuid().is_root() {
        return Err(Error::NotRoot);
    }
    if options.file_only && options.model.spec().file_system {
        return Err(Error::NoImage {
            model: options.model,
        });
    }
    let device = Path::new("/dev/fuse");
    File::options()
        .read(true)
        .write(true)
        .open(device)
        .map_err(|source| Error::Fuse {
            path: device.to_owned(),
            source,
        })?;
    let dir = absolute(&options.dir)?;
    // Only one process at a time: two claims must agree on which of them created the directory.
    let _alone = alone()?;
    if let Some(left) = state::read(&dir)? {
        if left.is_alive() {
            return Err(taken(left));
        }
        release(&left, true)?;
    }
    let made_dir = !dir.exists();
    std::fs::create_dir_all(&dir).at("make", &dir)?;
    let mut entries = std::fs::read_dir(&dir).at("list", &dir)?;
    if entries.next().is_some() {
        return Err(Error::NotEmpty { dir });
    }
    let mut notes = Vec::new();
    let file_system = options.model.spec().file_system;
    let file_only = file_system || options.file_only || !block::loops_available();
    if file_only && !options.file_only && !file_system {
        notes.push(format!(
            "no loop devices here (/dev/loop-control is missing): {} holds {} itself, without a \
             block device and ext4",
            dir.display(),
            fs::IMAGE,
        ));
    }
    let folder = folder(&dir);
    let backing = if file_only {
        dir.clone()
    } else {
        folder.join("fuse")
    };
    std::fs::create_dir_all(folder.join("fuse")).at("make", &folder)?;
    let pid = std::process::id();
    let mounted = Mounted {
        dir,
        model: options.model,
        size: options.size,
        stretch: options.stretch,
        slow_writes: options.slow_writes,
        backing,
        loop_device: None,
        path_ns: 0,
        notes,
        pid,
        started: start_of(pid).unwrap_or(0),
        made_dir,
        queue: Vec::new(),
    };
    state::write(&mounted)?;
    Ok(mounted)
}

/// Waits until no other process claims a mount point. Dropping the returned file releases the lock.
fn alone() -> Result<File, Error> {
    let path = Path::new(STATES).join("lock");
    std::fs::create_dir_all(STATES).at("make", Path::new(STATES))?;
    let file = File::create(&path).at("make", &path)?;
    rustix::fs::flock(&file, rustix::fs::FlockOperation::LockExclusive).at("lock", &path)?;
    Ok(file)
}

fn taken(by: Mounted) -> Error {
    Error::Taken {
        dir: by.dir,
        model: by.model,
        pid: by.pid,
    }
}

/// Releases all parts of the disk, from the top down, and ends its server if that is another process; if `lazily`, even while the
/// disk is in use.
pub(crate) fn release(mounted: &Mounted, lazily: bool) -> Result<(), Error> {
    if mounted.backing != mounted.dir {
        block::unmount(&mounted.dir, lazily)?;
        block::detach(mounted)?;
    }
    // The file system above is gone; only the loop device may still be detaching.
    let above_is_gone = mounted.backing != mounted.dir;
    block::unmount(&mounted.backing, lazily || above_is_gone)?;
    end_server(mounted);
    let folder = folder(&mounted.dir);
    gone(std::fs::remove_dir_all(&folder)).at("remove", &folder)?;
    if mounted.made_dir {
        gone(std::fs::remove_dir(&mounted.dir)).at("remove", &mounted.dir)?;
    }
    Ok(())
}

/// Sends SIGTERM and waits up to 10 s; a server without its file system has nothing left to serve.
fn end_server(mounted: &Mounted) {
    if mounted.pid == std::process::id() || !mounted.is_alive() {
        return;
    }
    let Some(pid) = Pid::from_raw(mounted.pid as i32) else {
        return;
    };
    // The signal fails if the server has ended already.
    let _ = rustix::process::kill_process(pid, Signal::TERM);
    let deadline = Instant::now() + Duration::from_secs(10);
    while mounted.is_alive() && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(10));
    }
}

fn gone(result: std::io::Result<()>) -> std::io::Result<()> {
    match result {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}
