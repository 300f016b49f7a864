//! The block device and the file system above the FUSE file.
//!
//! `losetup` and `mkfs.ext4` are called as commands; mounting is a system call.
//! The device's queue is set up as a machine would have it (scheduler,
//! rotational flag, read-ahead at Linux's default) and put back afterwards.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use rustix::mount::{MountFlags, UnmountFlags};

use crate::error::{At, Error};
use crate::{Mounted, state};

/// Whether loop devices can be had here.
pub(crate) fn loops_available() -> bool {
    Path::new("/dev/loop-control").exists()
}

/// Loop device, queue settings, ext4 and its mount, on `mounted.image()`; written
/// to the state file step by step, so that whatever was made can be undone.
pub(crate) fn build(mounted: &mut Mounted) -> Result<(), Error> {
    let attach = ["--direct-io=on", "--find", "--show"];
    let mut losetup = Command::new("losetup");
    losetup.args(attach).arg(mounted.image());
    let device = PathBuf::from(run(losetup, "losetup", "mount")?.trim());
    mounted.loop_device = Some(device.clone());
    state::write(mounted)?;

    let rotational = u8::from(mounted.model.spec().rotational).to_string();
    for (setting, value) in [
        ("scheduler", "mq-deadline"),
        ("rotational", &rotational),
        ("read_ahead_kb", "128"),
    ] {
        set_queue(mounted, &device, setting, value)?;
    }
    state::write(mounted)?;

    let mut mkfs = Command::new("mkfs.ext4");
    // The image is new and zero: nothing needs to be zeroed or discarded first.
    mkfs.args(["-q", "-F", "-m", "0", "-E"])
        .arg("lazy_itable_init=1,lazy_journal_init=1,nodiscard")
        .arg(&device);
    run(mkfs, "mkfs.ext4", "e2fsprogs")?;
    rustix::mount::mount(
        &device,
        &mounted.dir,
        c"ext4",
        MountFlags::NOATIME,
        // Nor in the background later.
        c"noinit_itable",
    )
    .at("mount ext4 on", &mounted.dir)
}

/// Sets one property of the device's queue and notes what it was.
fn set_queue(
    mounted: &mut Mounted,
    device: &Path,
    setting: &str,
    value: &str,
) -> Result<(), Error> {
    let Some(name) = device.file_name() else {
        return Ok(());
    };
    let path = Path::new("/sys/block")
        .join(name)
        .join("queue")
        .join(setting);
    let before = std::fs::read_to_string(&path).at("read", &path)?;
    // A choice is shown as "none [mq-deadline] bfq".
    let chosen = match (before.find('['), before.find(']')) {
        (Some(start), Some(end)) => &before[start + 1..end],
        _ => before.trim(),
    };
    if chosen == value {
        return Ok(());
    }
    match std::fs::write(&path, value) {
        Ok(()) => mounted.queue.push((path, chosen.to_owned())),
        Err(error) => mounted.notes.push(format!(
            "{}: cannot set it to {value} ({error}): it stays {chosen}",
            path.display()
        )),
    }
    Ok(())
}

/// Unmounts `dir` if something is mounted there. `lazily`: even while in use.
pub(crate) fn unmount(dir: &Path, lazily: bool) -> Result<(), Error> {
    let deadline = Instant::now() + Duration::from_secs(2);
    while is_mount_point(dir)? {
        match rustix::mount::unmount(dir, UnmountFlags::NOFOLLOW) {
            Ok(()) => {}
            // Something may just be letting go: a scan of new devices, a detach.
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
            // Unmounted by someone else meanwhile.
            Err(rustix::io::Errno::INVAL) => break,
            Err(error) => return Err(error).at("unmount", dir),
        }
    }
    Ok(())
}

/// Detaches the loop device if it is still on our image, and puts its queue back.
pub(crate) fn detach(mounted: &Mounted) -> Result<(), Error> {
    let Some(device) = &mounted.loop_device else {
        return Ok(());
    };
    if !is_attached(device, &mounted.image()) {
        return Ok(());
    }
    for (path, before) in mounted.queue.iter().rev() {
        // As well as it goes: the device may be another's next.
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
    // The kernel adds a remark when the file is gone; a file system unmounted
    // lazily loses the front of the path.
    std::fs::read_to_string(backing).is_ok_and(|path| {
        let path = path.trim_end().trim_end_matches(" (deleted)");
        !path.is_empty() && image.as_os_str().to_string_lossy().ends_with(path)
    })
}

/// Whether something is mounted at `dir`, as the kernel's table says: asking the
/// directory would fail when its server is dead.
pub(crate) fn is_mount_point(dir: &Path) -> Result<bool, Error> {
    let table = "/proc/self/mountinfo";
    let text = std::fs::read_to_string(table).at("read", table)?;
    let wanted = dir.as_os_str().to_string_lossy();
    Ok(text
        .lines()
        .filter_map(|line| line.split(' ').nth(4))
        .any(|point| unescape(point) == wanted))
}

/// The table writes blanks, tabs, newlines and backslashes in octal.
fn unescape(text: &str) -> String {
    [
        ("\\040", " "),
        ("\\011", "\t"),
        ("\\012", "\n"),
        ("\\134", "\\"),
    ]
    .iter()
    .fold(text.to_owned(), |text, (code, plain)| {
        text.replace(code, plain)
    })
}

/// Runs a command to its end; returns what it printed.
fn run(mut command: Command, tool: &'static str, package: &'static str) -> Result<String, Error> {
    // Administrators' tools are not on everyone's path.
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
