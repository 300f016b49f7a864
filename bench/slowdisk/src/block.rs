//! The block device and the file system above the FUSE file.
//!
//! `losetup` and `mkfs.ext4` are called as commands; mounting is a system call. The device's queue gets the settings of a real
//! disk (scheduler, rotational flag, Linux's default read-ahead), and its former settings are restored afterwards.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use foreread_sys::mounts::{Mount, TABLE};
use rustix::mount::{MountFlags, UnmountFlags};

use crate::error::{At, Error};
use crate::{Mounted, state};

const SCHEDULER: &str = "scheduler";
const ROTATIONAL: &str = "rotational";
const READ_AHEAD_KB: &str = "read_ahead_kb";

/// True if loop devices are available.
pub(crate) fn loops_available() -> bool {
    Path::new("/dev/loop-control").exists()
}

/// Attaches a loop device to `mounted.image()` and sets its queue. Each step is written to the state file, so that it can be
/// undone.
pub(crate) fn attach(mounted: &mut Mounted) -> Result<(), Error> {
    let mut losetup = Command::new("losetup");
    losetup
        .args(["--direct-io=on", "--find", "--show"])
        .arg(mounted.image());
    let device = PathBuf::from(run(losetup, "losetup", "mount")?.trim());
    mounted.loop_device = Some(device.clone());
    state::write(mounted)?;

    mounted.queue = queue_settings(&device)?;
    state::write(mounted)?;
    let rotational = u8::from(mounted.model.spec().rotational).to_string();
    set_queue(mounted, SCHEDULER, "mq-deadline");
    set_queue(mounted, ROTATIONAL, &rotational);
    Ok(())
}

/// Reads `count` blocks from the start of the disk, one at a time and without the page cache, by another process: the serving
/// process must not wait for itself.
pub(crate) fn read_blocks(mounted: &Mounted, count: usize) -> Result<(), Error> {
    let mut dd = Command::new("dd");
    let mut input = OsString::from("if=");
    input.push(mounted.device());
    dd.arg(input)
        .args(["of=/dev/null", "bs=4096", "iflag=direct"])
        .arg(format!("count={count}"));
    run(dd, "dd", "coreutils")?;
    Ok(())
}

/// Formats the loop device with ext4 and mounts it.
pub(crate) fn format(mounted: &mut Mounted) -> Result<(), Error> {
    let device = mounted.device();
    let mut mkfs = Command::new("mkfs.ext4");
    // The image is new and zero, so nothing needs to be zeroed or discarded, neither now
    mkfs.args(["-q", "-F", "-m", "0", "-E"])
        .arg("lazy_itable_init=1,lazy_journal_init=1,nodiscard")
        .arg(&device);
    run(mkfs, "mkfs.ext4", "e2fsprogs")?;
    rustix::mount::mount(
        &device,
        &mounted.dir,
        c"ext4",
        MountFlags::NOATIME,
        // nor in the background later.
        c"noinit_itable",
    )
    .at("mount ext4 on", &mounted.dir)?;
    // Set last, because the settings before it may change it.
    set_queue(mounted, READ_AHEAD_KB, "128");
    Ok(())
}

/// The present values of the queue's settings that will be changed: (file, value).
fn queue_settings(device: &Path) -> Result<Vec<(PathBuf, String)>, Error> {
    let name = device.file_name().unwrap_or(device.as_os_str());
    let queue = Path::new("/sys/block").join(name).join("queue");
    [SCHEDULER, ROTATIONAL, READ_AHEAD_KB]
        .into_iter()
        .map(|setting| {
            let path = queue.join(setting);
            let text = std::fs::read_to_string(&path).at("read", &path)?;
            // A choice is shown in brackets: "none [mq-deadline] bfq".
            let value = match (text.find('['), text.find(']')) {
                (Some(start), Some(end)) => &text[start + 1..end],
                _ => text.trim(),
            };
            Ok((path, value.to_owned()))
        })
        .collect()
}

/// Changes a setting. If that fails, the disk is still slow, and a note names the missing setting.
fn set_queue(mounted: &mut Mounted, setting: &str, value: &str) {
    let named = |(path, _): &&(PathBuf, String)| path.ends_with(setting);
    if let Some((path, before)) = mounted.queue.iter().find(named)
        && let Err(error) = std::fs::write(path, value)
    {
        mounted.notes.push(format!(
            "{}: cannot set it to {value} ({error}): it stays {before}",
            path.display()
        ));
    }
}

/// Unmounts `dir` if something is mounted there; if `lazily`, even while it is in use.
pub(crate) fn unmount(dir: &Path, lazily: bool) -> Result<(), Error> {
    let deadline = Instant::now() + Duration::from_secs(2);
    while is_mount_point(dir)? {
        match rustix::mount::unmount(dir, UnmountFlags::NOFOLLOW) {
            Ok(()) => {}
            // The device may be in use for a moment only, by a scan of new devices or by a detach.
            Err(rustix::io::Errno::BUSY) if Instant::now() < deadline => {
                std::thread::sleep(Duration::from_millis(50));
            }
            Err(rustix::io::Errno::BUSY) if lazily => {
                let detach = UnmountFlags::DETACH | UnmountFlags::NOFOLLOW;
                rustix::mount::unmount(dir, detach).at("unmount", dir)?;
            }
            Err(rustix::io::Errno::BUSY) => {
                return Err(Error::InUse {
                    dir: dir.to_owned(),
                });
            }
            // Another process has unmounted it meanwhile.
            Err(rustix::io::Errno::INVAL) => break,
            Err(error) => return Err(error).at("unmount", dir),
        }
    }
    Ok(())
}

/// Detaches the loop device if it still has this disk's image, and restores its queue's settings.
pub(crate) fn detach(mounted: &Mounted) -> Result<(), Error> {
    let Some(device) = &mounted.loop_device else {
        return Ok(());
    };
    if !is_attached(device, &mounted.image()) {
        return Ok(());
    }
    for (path, before) in &mounted.queue {
        // Errors are ignored, so that as much as possible is restored for the device's next user.
        let _ = std::fs::write(path, before);
    }
    let mut losetup = Command::new("losetup");
    losetup.arg("--detach").arg(device);
    run(losetup, "losetup", "mount")?;
    let deadline = Instant::now() + Duration::from_secs(2);
    while is_attached(device, &mounted.image()) && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(10));
    }
    Ok(())
}

fn is_attached(device: &Path, image: &Path) -> bool {
    let Some(name) = device.file_name() else {
        return false;
    };
    let backing = Path::new("/sys/block").join(name).join("loop/backing_file");
    // The kernel appends a remark to a deleted file's path, and the path of a file system that was unmounted lazily loses its
    // beginning.
    std::fs::read_to_string(backing).is_ok_and(|path| {
        let path = path.trim_end().trim_end_matches(" (deleted)");
        !path.is_empty() && image.as_os_str().to_string_lossy().ends_with(path)
    })
}

/// True if the kernel's table has a mount at `dir`. A look at the directory itself would fail if its server is dead.
pub(crate) fn is_mount_point(dir: &Path) -> Result<bool, Error> {
    let table = Mount::table().at("read", TABLE)?;
    Ok(Mount::all_in(&table).any(|mount| mount.point == dir))
}

/// Runs a command; returns its output.
fn run(mut command: Command, tool: &'static str, package: &'static str) -> Result<String, Error> {
    // Tools for administrators are not in every user's path.
    let path = std::env::var("PATH").unwrap_or_default();
    command.env("PATH", format!("{path}:/usr/sbin:/sbin"));
    command.env("LC_ALL", "C");
    let output = match command.output() {
        Ok(output) => output,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return Err(Error::MissingTool { tool, package });
        }
        Err(error) => return Err(error).at("run", tool),
    };
    if !output.status.success() {
        let arguments = command
            .get_args()
            .map(|argument| argument.to_string_lossy());
        let words: Vec<_> = std::iter::once(tool.into()).chain(arguments).collect();
        return Err(Error::Tool {
            command: words.join(" "),
            status: output.status,
            stderr: String::from_utf8_lossy(&output.stderr).trim().to_owned(),
        });
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
