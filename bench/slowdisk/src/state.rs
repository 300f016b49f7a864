//! Which slow disks there are: one state file each, so that they can be found,
//! and cleaned up after a server that was killed.
//!
//! Under `/run/foreread/slowdisk`, a folder per mount point holds `state.json`
//! and the point where the FUSE file system is mounted. Invariant: what has been
//! made is in the state file before the next thing is made, and the file goes last.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use foreread_disk::Model;
use rustix::process::{Pid, Signal};
use serde::{Deserialize, Serialize};

use crate::error::{At, Error};
use crate::{Counters, Options, block, fs, tree};

const STATES: &str = "/run/foreread/slowdisk";
const STATE: &str = "state.json";

/// A slow disk that is mounted, by this process or another.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Mounted {
    /// The mount point.
    pub dir: PathBuf,
    /// Which model.
    #[serde(with = "model_name")]
    pub model: Model,
    /// The disk's size, bytes.
    pub size: u64,
    /// Whether the image is spread over the whole stroke.
    pub stretch: bool,
    /// Whether writes take the model's time.
    pub slow_writes: bool,
    /// Where the FUSE file system is: `dir` itself if there is no block device.
    pub backing: PathBuf,
    /// The block device, unless there is only the FUSE file.
    pub loop_device: Option<PathBuf>,
    /// What the way from a program to the server and back takes, ns: answers are
    /// sent that much earlier, so that a program sees the model's times.
    pub path_ns: u64,
    /// What could not be had, in plain words.
    pub notes: Vec<String>,
    /// The process that serves it.
    pub pid: u32,
    /// When that process started, clock ticks since boot: a process id alone may
    /// have been given to another.
    started: u64,
    /// Whether `dir` was made for the disk.
    made_dir: bool,
    /// Queue settings that were changed, and what they were.
    pub(crate) queue: Vec<(PathBuf, String)>,
}

impl Mounted {
    /// The slow disk mounted at `dir`.
    pub fn find(dir: &Path) -> Result<Mounted, Error> {
        let absolute = absolute(dir)?;
        read(&absolute)?.ok_or(Error::NotMounted { dir: absolute })
    }

    /// The image, below everything; of a model that is a file system, its servers' disks as one.
    pub fn image(&self) -> PathBuf {
        self.served(fs::IMAGE)
    }

    /// One of the files that tell of the disk: between the user's own they are hidden.
    fn served(&self, name: &str) -> PathBuf {
        if self.model.spec().file_system {
            self.backing.join(format!("{}{name}", tree::HIDDEN))
        } else {
            self.backing.join(name)
        }
    }

    /// What to open to read the disk as a whole: the block device, else the image.
    pub fn device(&self) -> PathBuf {
        match &self.loop_device {
            Some(device) => device.clone(),
            None => self.image(),
        }
    }

    /// Whether its server lives.
    pub fn is_alive(&self) -> bool {
        start_of(self.pid) == Some(self.started)
    }

    /// What it has served.
    pub fn counters(&self) -> Result<Counters, Error> {
        let path = self.served(fs::STATS);
        let text = std::fs::read(&path).at("read", &path)?;
        serde_json::from_slice(&text).at("understand", &path)
    }

    /// Empties the disk's own cache (not the kernel's).
    pub fn forget(&self) -> Result<(), Error> {
        let path = self.served(fs::FORGET);
        std::fs::write(&path, "1").at("write", &path)
    }
}

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
    if let Some(left) = read(&dir)? {
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
    write(&mounted)?;
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

/// Writes the state file anew, whole or not at all.
pub(crate) fn write(mounted: &Mounted) -> Result<(), Error> {
    let path = folder(&mounted.dir).join(STATE);
    let new = path.with_extension("new");
    let text = serde_json::to_vec_pretty(mounted).at("write", &new)?;
    std::fs::write(&new, text).at("write", &new)?;
    std::fs::rename(&new, &path).at("write", &path)
}

fn read(dir: &Path) -> Result<Option<Mounted>, Error> {
    let path = folder(dir).join(STATE);
    let text = match std::fs::read(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error).at("read", &path),
    };
    serde_json::from_slice(&text)
        .map(Some)
        .at("understand", &path)
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

/// When a process started, clock ticks since boot; None if it is dead.
fn start_of(pid: u32) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The command's name, in parentheses, may hold anything.
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    let dead = matches!(fields.next()?, "Z" | "X");
    let started = fields.nth(18)?.parse().ok()?;
    (!dead).then_some(started)
}

/// The folder of the disk mounted at `dir`; bytes other than letters and digits
/// are written in hexadecimal.
fn folder(dir: &Path) -> PathBuf {
    let name: String = dir
        .as_os_str()
        .as_encoded_bytes()
        .iter()
        .map(|byte| match byte {
            b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' => char::from(*byte).to_string(),
            _ => format!("_{byte:02x}"),
        })
        .collect();
    Path::new(STATES).join(name)
}

/// `dir` from the root, links resolved as far as it exists. The directory itself
/// is not asked: a dead server would make that fail.
fn absolute(dir: &Path) -> Result<PathBuf, Error> {
    let plain = std::path::absolute(dir).at("find", dir)?;
    match (plain.parent().map(Path::canonicalize), plain.file_name()) {
        (Some(Ok(parent)), Some(name)) => {
            let resolved = parent.join(name);
            let link = std::fs::symlink_metadata(&resolved).is_ok_and(|meta| meta.is_symlink());
            if link {
                return resolved.canonicalize().at("find", dir);
            }
            Ok(resolved)
        }
        _ => Ok(plain),
    }
}

fn gone(result: std::io::Result<()>) -> std::io::Result<()> {
    match result {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

/// A model is written by its name.
mod model_name {
    use foreread_disk::Model;
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    pub(super) fn serialize<S: Serializer>(model: &Model, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(model.name())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Model, D::Error> {
        let name = String::deserialize(from)?;
        name.parse().map_err(D::Error::custom)
    }
}
