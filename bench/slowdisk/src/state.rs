//! The existing slow disks: one state file each, so that any process can find a disk, even after its server was killed.
//!
//! `/run/foreread/slowdisk` has a folder per mount point, with `state.json` and the mount point of the FUSE file system. Invariant: each
//! part is in the state file before the next one is created, and the file is deleted last.

use std::path::{Path, PathBuf};

use foreread_disk::Model;
use foreread_sys::procfs::{self, Stat};
use serde::{Deserialize, Serialize};

use crate::error::{At, Error};
use crate::{Counters, fs, tree};

/// The folder of all state files.
pub(crate) const STATES: &str = "/run/foreread/slowdisk";
const STATE: &str = "state.json";

/// A slow disk that is mounted, by this process or another.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Mounted {
    /// The mount point.
    pub dir: PathBuf,
    /// The model.
    #[serde(with = "model_name")]
    pub model: Model,
    /// The disk's size, bytes.
    pub size: u64,
    /// True if the image is spread over the whole stroke.
    pub stretch: bool,
    /// True if writes take the model's time.
    pub slow_writes: bool,
    /// The mount point of the FUSE file system; `dir` itself if there is no block device.
    pub backing: PathBuf,
    /// The block device; `None` if there is only the FUSE file.
    pub loop_device: Option<PathBuf>,
    /// Duration of the path from a program to the server and back, in ns. Answers are sent earlier by this time, so that a
    /// program sees the model's times.
    pub path_ns: u64,
    /// Missing features, as text.
    pub notes: Vec<String>,
    /// The serving process.
    pub pid: u32,
    /// Start of that process, in clock ticks since boot, because the process id alone may have been reused.
    pub(crate) started: u64,
    /// True if `dir` was created for the disk.
    pub(crate) made_dir: bool,
    /// The queue's settings that were changed, with their former values.
    pub(crate) queue: Vec<(PathBuf, String)>,
}

impl Mounted {
    /// The slow disk mounted at `dir`.
    pub fn find(dir: &Path) -> Result<Mounted, Error> {
        let absolute = absolute(dir)?;
        read(&absolute)?.ok_or(Error::NotMounted { dir: absolute })
    }

    /// The image; for a model that is a file system, the file of all its servers' disks.
    pub fn image(&self) -> PathBuf {
        self.served(fs::IMAGE)
    }

    /// One of the served files about the disk; hidden where users have their own files beside it.
    fn served(&self, name: &str) -> PathBuf {
        if self.model.spec().file_system {
            self.backing.join(format!("{}{name}", tree::HIDDEN))
        } else {
            self.backing.join(name)
        }
    }

    /// The path for reading the whole disk: the block device, or the image.
    pub fn device(&self) -> PathBuf {
        match &self.loop_device {
            Some(device) => device.clone(),
            None => self.image(),
        }
    }

    /// True if the serving process is alive.
    pub fn is_alive(&self) -> bool {
        start_of(self.pid) == Some(self.started)
    }

    /// Counts of served requests.
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

/// Replaces the state file atomically.
pub(crate) fn write(mounted: &Mounted) -> Result<(), Error> {
    let path = folder(&mounted.dir).join(STATE);
    let new = path.with_extension("new");
    let text = serde_json::to_vec_pretty(mounted).at("write", &new)?;
    std::fs::write(&new, text).at("write", &new)?;
    std::fs::rename(&new, &path).at("write", &path)
}

/// The disk mounted at `dir`, as described in its state file; `None` without such a file.
pub(crate) fn read(dir: &Path) -> Result<Option<Mounted>, Error> {
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

/// Start of a process, in clock ticks since boot; `None` if it is dead.
pub(crate) fn start_of(pid: u32) -> Option<u64> {
    let stat = procfs::stat(pid).ok()?;
    let fields = Stat::of(&stat)?;
    let dead = matches!(fields.field(Stat::STATE)?, b"Z" | b"X");
    let started = fields.number(Stat::STARTED)?;
    (!dead).then_some(started)
}

/// The folder for the disk mounted at `dir`; in its name, bytes other than letters and digits are written in hexadecimal.
pub(crate) fn folder(dir: &Path) -> PathBuf {
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

/// `dir` as an absolute path, with links resolved in the part that exists. The directory itself is not opened, because that fails
/// if its server is dead.
pub(crate) fn absolute(dir: &Path) -> Result<PathBuf, Error> {
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

/// Serialises a model as its name.
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
