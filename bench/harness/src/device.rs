//! The block device below a directory: bytes read from it, its read-ahead, its properties.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde::Serialize;

/// Linux's default read-ahead, in KiB; all plain runs are measured with it.
pub const DEFAULT_READ_AHEAD_KB: u64 = 128;

/// A block device, by its place in sysfs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Device {
    /// Device number.
    dev: u64,
    /// `/sys/dev/block/MAJOR:MINOR`, resolved.
    sysfs: PathBuf,
    /// The folder with the queue's settings; for a partition, the folder of its disk.
    queue: PathBuf,
}

/// The properties of a device that a report shows.
#[derive(Clone, Debug, Serialize)]
pub struct Facts {
    /// Kernel name of the disk, such as `vda` or `loop3`.
    pub name: String,
    /// File-system type.
    pub file_system: String,
    /// True if the kernel says that the disk rotates.
    pub rotational: bool,
    /// The I/O scheduler in use.
    pub scheduler: Option<String>,
    /// Requests that its queue accepts at once.
    pub queue_depth: u32,
    /// Read-ahead before the benchmarks changed it, in KiB.
    pub read_ahead_kb: u64,
}

impl Device {
    /// The device that holds `path`, if the file system is on one block device.
    pub fn holding(path: &Path) -> Result<Option<Self>> {
        let dev = fs::metadata(path)
            .with_context(|| format!("looking at {}", path.display()))?
            .dev();
        let number = format!("{}:{}", rustix::fs::major(dev), rustix::fs::minor(dev));
        let Ok(sysfs) = fs::canonicalize(Path::new("/sys/dev/block").join(number)) else {
            return Ok(None);
        };
        let queue = [sysfs.join("queue"), sysfs.join("../queue")]
            .into_iter()
            .find(|queue| queue.is_dir());
        Ok(queue.map(|queue| Self { dev, sysfs, queue }))
    }

    /// Bytes read from the device since it appeared.
    pub fn bytes_read(&self) -> Result<u64> {
        foreread_sys::device::bytes_read(self.dev)
            .with_context(|| format!("reading {}/stat", self.sysfs.display()))
    }

    /// The device's properties, as the kernel reports them.
    pub fn facts(&self) -> Facts {
        let device = foreread_sys::device::Device::of(self.dev);
        let scheduler = fs::read_to_string(self.queue.join("scheduler")).ok();
        Facts {
            name: device.name,
            file_system: device.fs_type,
            rotational: device.rotational,
            scheduler: scheduler.map(|text| chosen(&text).to_owned()),
            queue_depth: device.queue_depth,
            read_ahead_kb: device.read_ahead / 1024,
        }
    }

    /// Sets the read-ahead to `kb` until the returned guard is dropped.
    pub fn set_read_ahead(&self, kb: u64) -> Result<ReadAhead> {
        let path = self.queue.join("read_ahead_kb");
        let before =
            fs::read_to_string(&path).with_context(|| format!("reading {}", path.display()))?;
        fs::write(&path, kb.to_string())
            .with_context(|| format!("setting {} to {kb}", path.display()))?;
        Ok(ReadAhead { path, before })
    }
}

/// Restores the read-ahead on drop.
#[must_use = "the setting lasts as long as the guard"]
#[derive(Debug)]
pub struct ReadAhead {
    path: PathBuf,
    before: String,
}

impl Drop for ReadAhead {
    fn drop(&mut self) {
        if let Err(error) = fs::write(&self.path, self.before.trim()) {
            eprintln!(
                "could not put {} back to {}: {error}",
                self.path.display(),
                self.before.trim()
            );
        }
    }
}

/// The choice in brackets of a sysfs list such as `none [mq-deadline] bfq`.
fn chosen(list: &str) -> &str {
    let inside = list
        .split_once('[')
        .and_then(|(_, rest)| rest.split_once(']'));
    inside.map_or(list.trim(), |(name, _)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scheduler_is_the_one_in_brackets() {
        assert_eq!(chosen("none [mq-deadline] kyber\n"), "mq-deadline");
        assert_eq!(chosen("none\n"), "none");
    }

    #[test]
    fn the_read_ahead_is_put_back_when_the_guard_goes() {
        let queue = tempfile::tempdir().unwrap();
        fs::write(queue.path().join("read_ahead_kb"), "8192\n").unwrap();
        let device = Device {
            dev: 0,
            sysfs: queue.path().to_owned(),
            queue: queue.path().to_owned(),
        };
        let guard = device.set_read_ahead(128).unwrap();
        assert_eq!(
            fs::read_to_string(queue.path().join("read_ahead_kb")).unwrap(),
            "128"
        );
        drop(guard);
        assert_eq!(
            fs::read_to_string(queue.path().join("read_ahead_kb")).unwrap(),
            "8192"
        );
    }
}
