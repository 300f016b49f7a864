//! The measured profiles of the user's devices, in `$XDG_DATA_HOME/foreread/devices.json`.
//!
//! Invariant: a file is used only if it was read completely and all values are within bounds. Otherwise it is refused with its name, and
//! the built-in profiles apply. The file is replaced atomically.
//!
//! Data flow: `calibrate` → [`Profiles::put`] → the file → [`Profiles::load`] → sessions and `doctor`.

#![forbid(unsafe_code)]

mod error;

use std::fs::{self, DirBuilder, File, Permissions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use foreread_engine::calibrate::Samples;
use foreread_engine::{Horizon, Order, Profile};
use foreread_sys::device::Device;
use foreread_sys::mounts::Mount;
use foreread_sys::{environment, file};
use serde::{Deserialize, Serialize};

use error::within;
pub use error::{Error, OutOfBounds, Unsound};

/// The file's format mark, and the version of its layout.
const FORMAT: &str = "foreread devices";
const VERSION: u32 = 1;
/// Size of the file, at most, in bytes: some thousand devices.
const LIMIT: u64 = 8 << 20;
/// Bounds of a profile's demands on a device and on memory.
const DEPTH: std::ops::RangeInclusive<usize> = 1..=1024;
const REQUEST_PAGES: std::ops::RangeInclusive<u64> = 1..=16_384;
const SERVICE_NS: std::ops::RangeInclusive<u64> = 1..=60_000_000_000;

/// Identifies a device, also after a reboot.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Key {
    /// The whole disk's name, or where a file system without one comes from.
    pub name: String,
    /// Its size, in sectors of 512 bytes; 0 without a disk.
    pub sectors: u64,
    /// Its serial number or another unique property; empty if there is none.
    pub id: String,
}

impl Key {
    /// The key of the device behind `st_dev`.
    pub fn of(dev: u64, mounts: &[Mount]) -> Self {
        let device = Device::of(dev);
        let mount = mounts.iter().rev().find(|mount| mount.dev == dev);
        if !device.block {
            return Self {
                name: device.name,
                sectors: 0,
                id: device.fs_type,
            };
        }
        let folder = Path::new("/sys/block").join(&device.name);
        let file_system = || {
            let stat = rustix::fs::statvfs(&mount?.point).ok()?;
            Some(format!("file system {:x}", stat.f_fsid))
        };
        Self {
            sectors: word(&folder, "size")
                .and_then(|size| size.parse().ok())
                .unwrap_or(0),
            id: id(&folder, file_system),
            name: device.name,
        }
    }

    /// True if both are the same device. Names change from boot to boot, so they count only without anything better.
    pub fn is(&self, other: &Self) -> bool {
        self.sectors == other.sectors
            && self.id == other.id
            && (self.name == other.name || self.sectors > 0 && !self.id.is_empty())
    }
}

/// A disk's own identity, from its folder in `/sys`. A loop device is identified by its file and by the file system in it, because another
/// image may replace the file.
fn id(folder: &Path, file_system: impl Fn() -> Option<String>) -> String {
    if let Some(file) = word(folder, "loop/backing_file") {
        return [Some(file), file_system()]
            .into_iter()
            .flatten()
            .collect::<Vec<_>>()
            .join(", ");
    }
    let names = [
        "wwid",
        "device/wwid",
        "serial",
        "device/serial",
        "dm/uuid",
        "md/uuid",
    ];
    let own = names.iter().find_map(|name| word(folder, name));
    let model = word(folder, "device/model");
    match own {
        Some(own) => model.into_iter().chain([own]).collect::<Vec<_>>().join(" "),
        None => file_system().unwrap_or_default(),
    }
}

/// The contents of a one-line file, if there are any. Some drivers leave the end of the line out.
fn word(folder: &Path, name: &str) -> Option<String> {
    let text = fs::read(folder.join(name)).ok()?;
    let text = String::from_utf8_lossy(&text);
    let text = text.trim_matches(|c: char| c.is_whitespace() || c == '\0');
    (!text.is_empty()).then(|| text.to_owned())
}

/// A profile as stored; see [`Profile`] for the meanings.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Constants {
    by_position: bool,
    depth: usize,
    request_pages: u64,
    infill_pages: u64,
    service_ns: u64,
    /// The largest lead, in accesses; `null` for any.
    lead: Option<u64>,
    /// The negated time threshold; `null` for none.
    lateness_ns: Option<u64>,
}

impl From<&Profile> for Constants {
    fn from(profile: &Profile) -> Self {
        let Horizon {
            time_threshold,
            queue_threshold,
        } = profile.horizon;
        Self {
            by_position: profile.order == Order::Position,
            depth: profile.depth,
            request_pages: profile.request_pages,
            infill_pages: profile.infill_pages,
            service_ns: profile.service_ns,
            lead: (queue_threshold != u64::MAX).then_some(queue_threshold),
            lateness_ns: (time_threshold != i64::MIN).then_some(time_threshold.unsigned_abs()),
        }
    }
}

impl Constants {
    /// The profile, if all of it is within bounds.
    fn profile(&self) -> Result<Profile, OutOfBounds> {
        within("depth", self.depth, DEPTH)?;
        within("request_pages", self.request_pages, REQUEST_PAGES)?;
        within("infill_pages", self.infill_pages, 0..=self.request_pages)?;
        within("service_ns", self.service_ns, SERVICE_NS)?;
        let time_threshold = match self.lateness_ns {
            None => i64::MIN,
            Some(ns) => {
                within("lateness_ns", ns, 0..=i64::MAX as u64)?;
                -(ns as i64)
            }
        };
        Ok(Profile {
            order: if self.by_position {
                Order::Position
            } else {
                Order::Program
            },
            depth: self.depth,
            horizon: Horizon {
                time_threshold,
                queue_threshold: self.lead.unwrap_or(u64::MAX),
            },
            infill_pages: self.infill_pages,
            request_pages: self.request_pages,
            service_ns: self.service_ns,
        })
    }
}

/// A device and its measurements.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// The device.
    #[serde(flatten)]
    pub key: Key,
    /// When, in seconds since the epoch.
    pub measured_at: u64,
    /// The derived profile.
    pub profile: Constants,
    /// The samples from which it was derived.
    pub samples: Samples,
}

impl Measured {
    /// The profile, which was checked when it was read.
    pub fn profile(&self) -> Option<Profile> {
        self.profile.profile().ok()
    }

    /// The day it was measured.
    pub fn day(&self) -> String {
        UNIX_EPOCH
            .checked_add(Duration::from_secs(self.measured_at))
            .map(|at| humantime::format_rfc3339_seconds(at).to_string())
            .and_then(|text| Some(text.split_once('T')?.0.to_owned()))
            .unwrap_or_default()
    }
}

/// The stored file.
#[derive(Serialize, Deserialize)]
struct Stored {
    format: String,
    version: u32,
    devices: Vec<Measured>,
}

/// The head of the file, read before anything is expected of the rest.
#[derive(Deserialize)]
struct Head {
    #[serde(default)]
    format: String,
    #[serde(default)]
    version: u32,
}

/// All measured devices.
#[derive(Clone, Debug, Default)]
pub struct Profiles(Vec<Measured>);

impl Profiles {
    /// Reads the file; without one nothing was measured.
    ///
    /// # Errors
    /// When it is not a valid file; the error names it and the value at fault.
    pub fn load() -> Result<Self, Error> {
        let path = stored_at()?;
        Self::read(&path).map_err(|source| Error::Unusable { path, source })
    }

    fn read(path: &Path) -> Result<Self, Unsound> {
        // The chooser of the folder may have put anything there.
        let (file, facts) = match file::open_regular(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Self::default()),
            opened => opened?,
        };
        if facts.size > LIMIT {
            return Err(Unsound::TooLong(LIMIT));
        }
        let mut text = String::new();
        // The file may have grown since.
        File::from(file).take(LIMIT + 1).read_to_string(&mut text)?;
        if text.len() as u64 > LIMIT {
            return Err(Unsound::TooLong(LIMIT));
        }
        let head: Head = serde_json::from_str(&text)?;
        if head.format != FORMAT {
            return Err(Unsound::Foreign);
        }
        if head.version != VERSION {
            return Err(Unsound::Version {
                found: head.version,
                known: VERSION,
            });
        }
        let stored: Stored = serde_json::from_str(&text)?;
        for device in &stored.devices {
            device.profile.profile().map_err(|source| Unsound::Device {
                device: device.key.name.clone(),
                source,
            })?;
        }
        Ok(Self(stored.devices))
    }

    /// The measurements of the device behind `st_dev`.
    pub fn of(&self, dev: u64) -> Option<&Measured> {
        if self.0.is_empty() {
            return None;
        }
        let key = Key::of(dev, &Mount::all().ok()?);
        self.0.iter().find(|device| device.key.is(&key))
    }

    /// Stores a profile in place of the device's former one. An unreadable file is replaced. Returns the file's path.
    ///
    /// # Errors
    /// When it cannot be written; the former file is unchanged then.
    pub fn put(key: Key, profile: &Profile, samples: Samples) -> Result<PathBuf, Error> {
        let path = stored_at()?;
        let mut devices = Self::read(&path).unwrap_or_default().0;
        devices.retain(|device| !device.key.is(&key));
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        devices.push(Measured {
            key,
            measured_at: now.map_or(0, |age| age.as_secs()),
            profile: profile.into(),
            samples,
        });
        let stored = Stored {
            format: FORMAT.to_owned(),
            version: VERSION,
            devices,
        };
        match write(&path, &stored) {
            Ok(()) => Ok(path),
            Err(source) => Err(Error::Unwritable { path, source }),
        }
    }
}

/// The folder of the user's data, by the XDG base directory specification. A set-user-ID program has none, because its caller chooses its
/// environment.
pub fn data_home() -> Option<PathBuf> {
    let absolute = |name: &str| {
        environment::var(name)
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
    };
    absolute("XDG_DATA_HOME").or_else(|| Some(absolute("HOME")?.join(".local/share")))
}

fn stored_at() -> Result<PathBuf, Error> {
    let home = data_home().ok_or(Error::NoPlace)?;
    Ok(home.join("foreread/devices.json"))
}

fn write(path: &Path, stored: &Stored) -> io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("/"));
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(folder)?;
    let mut new = tempfile::Builder::new()
        .prefix(".devices-")
        .permissions(Permissions::from_mode(0o600))
        .tempfile_in(folder)?;
    serde_json::to_writer_pretty(&mut new, stored)?;
    new.write_all(b"\n")?;
    new.as_file().sync_all()?;
    new.persist(path)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(name: &str, sectors: u64, id: &str) -> Key {
        Key {
            name: name.into(),
            sectors,
            id: id.into(),
        }
    }

    #[test]
    fn a_disk_is_known_by_what_is_its_own_even_under_another_name() {
        assert!(key("sda", 100, "S1").is(&key("sdb", 100, "S1")));
        assert!(!key("sda", 100, "S1").is(&key("sda", 100, "S2")));
        assert!(!key("sda", 100, "S1").is(&key("sda", 200, "S1")));
        assert!(!key("sda", 100, "").is(&key("sdb", 100, "")));
        assert!(!key("a:/x", 0, "nfs4").is(&key("b:/x", 0, "nfs4")));
    }

    #[test]
    fn a_loop_device_is_known_by_its_file_and_what_is_in_it() {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("loop")).unwrap();
        fs::write(folder.path().join("loop/backing_file"), "/disk.img\n").unwrap();
        let one = id(folder.path(), || Some("file system 1".into()));
        assert_eq!(one, "/disk.img, file system 1");
        assert_ne!(one, id(folder.path(), || Some("file system 2".into())));
    }

    #[test]
    fn a_serial_number_goes_before_the_file_system() {
        let folder = tempfile::tempdir().unwrap();
        let other = || Some("file system 1".into());
        assert_eq!(id(folder.path(), other), "file system 1");
        fs::write(folder.path().join("serial"), "ABC\0").unwrap();
        assert_eq!(id(folder.path(), other), "ABC");
    }

    #[test]
    fn built_in_profiles_survive_being_stored() {
        for profile in [Profile::rotational(), Profile::solid_state()] {
            assert_eq!(Constants::from(&profile).profile().unwrap(), profile);
        }
    }

    #[test]
    fn what_is_no_regular_file_or_too_large_is_refused_and_never_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let place = folder.path().join("devices.json");
        assert!(Profiles::read(&place).unwrap().0.is_empty());
        let fifo = rustix::fs::Mode::from_raw_mode(0o600);
        rustix::fs::mkfifoat(rustix::fs::CWD, &place, fifo).unwrap();
        // Would wait for a writer for ever.
        assert!(matches!(Profiles::read(&place), Err(Unsound::Io(_))));
        fs::remove_file(&place).unwrap();
        std::os::unix::fs::symlink("/dev/zero", &place).unwrap();
        assert!(matches!(Profiles::read(&place), Err(Unsound::Io(_))));
        fs::remove_file(&place).unwrap();
        File::create(&place).unwrap().set_len(1 << 40).unwrap();
        assert!(matches!(Profiles::read(&place), Err(Unsound::TooLong(_))));
    }

    #[test]
    fn a_profile_out_of_bounds_is_refused_by_name() {
        let sound = Constants::from(&Profile::solid_state());
        let refusal = |spoil: fn(&mut Constants)| {
            let mut constants = sound.clone();
            spoil(&mut constants);
            constants.profile().unwrap_err().to_string()
        };
        assert!(refusal(|it| it.depth = 0).starts_with("depth: 0"));
        assert!(refusal(|it| it.request_pages = 1 << 40).starts_with("request_pages"));
        assert!(refusal(|it| it.infill_pages = 1 << 20).starts_with("infill_pages"));
        assert!(refusal(|it| it.lateness_ns = Some(u64::MAX)).starts_with("lateness_ns"));
    }
}
