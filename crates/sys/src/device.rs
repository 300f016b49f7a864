//! Devices: how large a hint may be, how deep a queue is, whether position matters.
//!
//! Invariant: every answer is usable. Unknown facts (a network file system, a FUSE mount, a hidden `/sys`) get values that are safe
//! anywhere: requests of 128 KiB, which no kernel cuts, and no assumption about positions.
//!
//! Data flow: device number (`st_dev`) → facts from `/sys` and `/proc/self/mountinfo`. Nothing is cached; ask once per device.

use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::mounts::{Mount, unescape};
use crate::text;

/// The kernel's default read-ahead, which a device-less file system starts from
/// (`VM_READAHEAD_PAGES`).
const DEFAULT_READ_AHEAD: u64 = 128 * 1024;
/// Requests a queue of unknown depth is trusted with; the block layer's own default.
const DEFAULT_QUEUE_DEPTH: u32 = 128;
/// Bytes of a sector in `/sys`, for any device.
const SECTOR: u64 = 512;

/// Facts about the device under a file system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Device {
    /// The device number asked about.
    pub dev: u64,
    /// The whole disk's name (`vda`, `loop0`, `dm-0`), or where a device-less file system comes from.
    pub name: String,
    /// The file system's type; empty if it is not among the mounts.
    pub fs_type: String,
    /// True if a block device is known to be under the file system.
    pub block: bool,
    /// True if the kernel regards it as a rotating disk. Virtual disks often claim so wrongly.
    pub rotational: bool,
    /// The kernel's read-ahead, in bytes.
    pub read_ahead: u64,
    /// The bytes one hint can ask for: the kernel silently cuts `WILLNEED` and `readahead`
    /// to the larger of the read-ahead and the device's largest request.
    pub max_hint: u64,
    /// Number of requests that the device's queue accepts at once.
    pub queue_depth: u32,
}

impl Device {
    /// The device of files with this `st_dev`.
    pub fn of(dev: u64) -> Self {
        Self::among(dev, &Mount::all().unwrap_or_default())
    }

    /// As [`Device::of`], with the mounts given.
    pub fn among(dev: u64, mounts: &[Mount]) -> Self {
        Self::by(dev, mounts, Path::new("/sys"))
    }

    /// As [`Device::among`], with `/sys` given.
    fn by(dev: u64, mounts: &[Mount], sys: &Path) -> Self {
        let mount = mounts.iter().rev().find(|mount| mount.dev == dev);
        let fs_type = mount.map_or_else(String::new, |mount| mount.fs_type.clone());
        let source = mount.map_or_else(String::new, |mount| mount.source.display().to_string());
        // btrfs and friends have a number of their own, and overlays lie on another file system.
        let below = mount.and_then(|mount| {
            if mount.fs_type == "overlay" {
                overlay_device(mount, mounts, dev)
            } else {
                block_device_at(Path::new(&mount.source))
            }
        });
        let disk = disk_folder(sys, dev).or_else(|| disk_folder(sys, below?));
        match disk {
            Some(disk) => Self::on_disk(dev, fs_type, &disk),
            None => Self::without_disk(dev, fs_type, source, sys),
        }
    }

    fn on_disk(dev: u64, fs_type: String, disk: &Path) -> Self {
        let queue = |name: &str| read_number(&disk.join("queue").join(name));
        let read_ahead = queue("read_ahead_kb").map_or(DEFAULT_READ_AHEAD, |kb| kb * 1024);
        let largest_request = queue("max_sectors_kb").map_or(DEFAULT_READ_AHEAD, |kb| kb * 1024);
        Self {
            dev,
            name: file_name(disk),
            fs_type,
            block: true,
            rotational: queue("rotational") == Some(1),
            read_ahead,
            max_hint: read_ahead.max(largest_request),
            queue_depth: queue("nr_requests")
                .and_then(|depth| u32::try_from(depth).ok())
                .unwrap_or(DEFAULT_QUEUE_DEPTH),
        }
    }

    fn without_disk(dev: u64, fs_type: String, source: String, sys: &Path) -> Self {
        let bdi = sys.join(format!("class/bdi/{}/read_ahead_kb", numbers(dev)));
        let read_ahead = read_number(&bdi).map_or(DEFAULT_READ_AHEAD, |kb| kb * 1024);
        Self {
            dev,
            name: source,
            fs_type,
            block: false,
            rotational: false,
            read_ahead,
            max_hint: read_ahead.max(DEFAULT_READ_AHEAD),
            queue_depth: DEFAULT_QUEUE_DEPTH,
        }
    }
}

/// Counters of a block device or partition since it appeared, for all processes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Done {
    /// Reads that are complete, as the device had them: neighbours are one.
    pub reads: u64,
    /// Bytes of them.
    pub bytes: u64,
    /// Requests that it has now.
    pub waiting: u64,
}

/// Reads the counters of the block device or partition `dev`.
///
/// # Errors
///
/// `ENOENT` where `dev` is no block device.
pub fn done(dev: u64) -> io::Result<Done> {
    let path = format!("/sys/dev/block/{}/stat", numbers(dev));
    let text = text::read(&path)?;
    parse_done(&text).ok_or_else(|| {
        io::Error::new(
            io::ErrorKind::InvalidData,
            format!("{path}: {:?}", text.trim()),
        )
    })
}

/// The counters of one block device or partition, open.
#[derive(Debug)]
pub struct Counters(fs::File);

impl Counters {
    /// Opens the counters of `dev`; `None` if it is no block device.
    pub fn open(dev: u64) -> Option<Self> {
        let path = format!("/sys/dev/block/{}/stat", numbers(dev));
        fs::File::open(path).ok().map(Self)
    }

    /// The name of the device or partition `dev`; `None` if it is no block device.
    pub fn name(dev: u64) -> Option<String> {
        let link = fs::read_link(format!("/sys/dev/block/{}", numbers(dev))).ok()?;
        Some(file_name(&link))
    }

    /// Reads the counters.
    pub fn read(&self) -> Option<Done> {
        let mut bytes = [0; 512];
        let read = rustix::io::pread(&self.0, &mut bytes, 0).ok()?;
        parse_done(str::from_utf8(&bytes[..read]).ok()?)
    }
}

/// Bytes read from a block device or partition since it appeared, by anyone.
///
/// # Errors
///
/// `ENOENT` where `dev` is no block device.
pub fn bytes_read(dev: u64) -> io::Result<u64> {
    done(dev).map(|done| done.bytes)
}

/// The first, the third and the ninth field of a device's `stat`.
fn parse_done(stat: &str) -> Option<Done> {
    let mut fields = stat.split_ascii_whitespace();
    let mut next = |skipped: usize| fields.nth(skipped)?.parse::<u64>().ok();
    Some(Done {
        reads: next(0)?,
        bytes: next(1)?.checked_mul(SECTOR)?,
        waiting: next(5)?,
    })
}

/// The `/sys` folder of the whole disk that `dev` is, or is a partition of.
fn disk_folder(sys: &Path, dev: u64) -> Option<PathBuf> {
    let folder = fs::canonicalize(sys.join("dev/block").join(numbers(dev))).ok()?;
    if folder.join("partition").exists() {
        folder.parent().map(Path::to_path_buf)
    } else {
        Some(folder)
    }
}

/// The number of the block device at a path such as `/dev/sda1`.
fn block_device_at(source: &Path) -> Option<u64> {
    use std::os::unix::fs::FileTypeExt;

    let meta = fs::metadata(source).ok()?;
    meta.file_type().is_block_device().then(|| meta.rdev())
}

/// The device under an overlay: that of its upper folder, or of its first lower one, where
/// this process can see it.
fn overlay_device(overlay: &Mount, mounts: &[Mount], dev: u64) -> Option<u64> {
    let options = overlay.super_options.as_bytes();
    let option = |name: &str| {
        let mut options = options.split(|byte| *byte == b',');
        options.find_map(|option| option.strip_prefix(name.as_bytes()))
    };
    let lowest = || option("lowerdir=")?.split(|byte| *byte == b':').next();
    let folder = option("upperdir=").or_else(lowest)?;
    let below = fs::metadata(unescape(folder)).ok()?.dev();
    if below == dev {
        return None;
    }
    let source = mounts.iter().rev().find(|mount| mount.dev == below);
    source
        .and_then(|mount| block_device_at(Path::new(&mount.source)))
        .or(Some(below))
}

fn numbers(dev: u64) -> String {
    format!("{}:{}", rustix::fs::major(dev), rustix::fs::minor(dev))
}

fn read_number(path: &Path) -> Option<u64> {
    text::read(path).ok()?.trim().parse().ok()
}

fn file_name(path: &Path) -> String {
    path.file_name()
        .map_or_else(String::new, |name| name.to_string_lossy().into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A made-up `/sys` with a disk `sda` (8:0) and its partition `sda1` (8:1).
    fn sys_with_a_disk() -> tempfile::TempDir {
        let sys = tempfile::tempdir().unwrap();
        let disk = sys.path().join("devices/sda");
        fs::create_dir_all(disk.join("queue")).unwrap();
        fs::create_dir_all(disk.join("sda1")).unwrap();
        fs::create_dir_all(sys.path().join("dev/block")).unwrap();
        for (name, value) in [
            ("rotational", "1\n"),
            ("read_ahead_kb", "128\n"),
            ("max_sectors_kb", "1280\n"),
            ("nr_requests", "64\n"),
        ] {
            fs::write(disk.join("queue").join(name), value).unwrap();
        }
        fs::write(disk.join("sda1/partition"), "1\n").unwrap();
        let link = |name: &str, to: PathBuf| {
            std::os::unix::fs::symlink(to, sys.path().join("dev/block").join(name)).unwrap();
        };
        link("8:0", disk.clone());
        link("8:1", disk.join("sda1"));
        sys
    }

    #[test]
    fn a_partition_is_described_by_its_disk() {
        let sys = sys_with_a_disk();
        let mounts = [Mount::parse(b"1 0 8:1 / /data rw - ext4 /dev/sda1 rw").unwrap()];
        let device = Device::by(rustix::fs::makedev(8, 1), &mounts, sys.path());
        assert_eq!(device.name, "sda");
        assert_eq!(device.fs_type, "ext4");
        assert!(device.block && device.rotational);
        assert_eq!(device.read_ahead, 128 << 10);
        assert_eq!(device.queue_depth, 64);
    }

    #[test]
    fn a_hint_may_be_as_large_as_the_larger_of_read_ahead_and_request() {
        let sys = sys_with_a_disk();
        let dev = rustix::fs::makedev(8, 0);
        assert_eq!(Device::by(dev, &[], sys.path()).max_hint, 1280 << 10);
        fs::write(sys.path().join("devices/sda/queue/read_ahead_kb"), "8192\n").unwrap();
        assert_eq!(Device::by(dev, &[], sys.path()).max_hint, 8 << 20);
    }

    #[test]
    fn a_file_system_without_a_device_gets_hints_no_kernel_cuts() {
        let sys = sys_with_a_disk();
        let mounts = [Mount::parse(b"1 0 0:77 / /net rw - nfs4 server:/export rw").unwrap()];
        let device = Device::by(rustix::fs::makedev(0, 77), &mounts, sys.path());
        assert_eq!(device.name, "server:/export");
        assert!(!device.block && !device.rotational);
        assert_eq!(device.max_hint, 128 << 10);
        assert!(device.queue_depth > 0);
    }

    #[test]
    fn stat_has_reads_sectors_and_what_is_waiting() {
        let done = Done {
            reads: 10,
            bytes: 3456 * SECTOR,
            waiting: 5,
        };
        assert_eq!(parse_done("  10  2  3456 7 8 9 1 2 5 3 4"), Some(done));
        assert_eq!(parse_done("10 2 3456"), None);
    }

    #[test]
    fn the_device_under_the_build_folder_is_described() {
        let dev = fs::metadata(env!("CARGO_MANIFEST_DIR")).unwrap().dev();
        let device = Device::of(dev);
        assert!(!device.fs_type.is_empty());
        assert!(device.max_hint >= device.read_ahead.max(4096), "{device:?}");
    }
}
