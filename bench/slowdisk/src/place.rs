//! Takes the place for a slow disk, and gives it up again: also the place that a killed server left.
//!
//! Invariant: processes that claim a place at once do so one after the other, under the lock of the
//! state folder. A place is undone from the top down: the file system, the loop device, the FUSE file.

use std::fs::File;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal};

use crate::error::{At, Error};
use crate::state::{self, Mounted, STATES, absolute, folder, start_of};
use crate::{Options, block, fs};

/// Unmounts the slow disk at `dir`, whoever serves it, alive or dead. Fails, and
/// leaves it as it is, while programs use it.
pub fn unmount(dir: &Path) -> Result<(), Error> {
    let mounted = Mounted::find(dir)?;
    // Nobody can use what nobody serves: do not wait for those who try.
    release(&mounted, !mounted.is_alive())
}

/// Makes sure a disk can be made as asked, and takes the place. Cleans up what a
/// killed server left there.
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
    // One at a time: two that come at once must agree on who made the directory.
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

/// Waits until no other process claims a place. The lock ends with the file returned.
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

/// Undoes whatever of the disk there is, from the top down; ends its server if
/// that is another process. `lazily`: even while it is used.
pub(crate) fn release(mounted: &Mounted, lazily: bool) -> Result<(), Error> {
    if mounted.backing != mounted.dir {
        block::unmount(&mounted.dir, lazily)?;
        block::detach(mounted)?;
    }
    // Above, nothing is left that uses it; a loop device detaches in its own time.
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

/// SIGTERM, and some patience; a server without its file system has nothing to do.
fn end_server(mounted: &Mounted) {
    if mounted.pid == std::process::id() || !mounted.is_alive() {
        return;
    }
    let Some(pid) = Pid::from_raw(mounted.pid as i32) else {
        return;
    };
    // It may end by itself first.
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
