//! A session's devices and mounts: read from the system once, for all its threads.
//!
//! Invariant: if the known mounts lack a device, they are read once more, because file systems may be mounted during a session.

use std::collections::HashMap;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use foreread_sys::device::Device;
use foreread_sys::mounts::Mount;

/// The type of a file system whose folders are mounted on access.
const AUTOMOUNT: &str = "autofs";

/// The table, shared.
#[derive(Clone, Debug, Default)]
pub(crate) struct Devices {
    known: Arc<Mutex<MountFacts>>,
    /// Whether position matters on a device; `None` while it is being found out.
    positions: Arc<Mutex<HashMap<u64, Option<bool>>>>,
    /// Whether pages of a file system without a block device stay in the page cache after a read.
    keeps: Arc<Mutex<HashMap<u64, bool>>>,
}

#[derive(Debug, Default)]
struct MountFacts {
    mounts: Option<Vec<Mount>>,
    met: HashMap<u64, Arc<Device>>,
}

impl Devices {
    /// The device of files with this `st_dev`.
    pub(crate) fn of(&self, dev: u64) -> Arc<Device> {
        let mut known = lock(&self.known);
        if let Some(device) = known.met.get(&dev) {
            return Arc::clone(device);
        }
        let device = Arc::new(Device::among(dev, known.mounts_with(dev)));
        known.met.insert(dev, Arc::clone(&device));
        device
    }

    /// True if anything with this device number is mounted.
    pub(crate) fn has_mounted(&self, dev: u64) -> bool {
        is_among(lock(&self.known).mounts_with(dev), dev)
    }

    /// The device number of the file system at `path`; `None` if accessing the path would mount it.
    pub(crate) fn under(&self, path: &Path) -> Option<u64> {
        let place = MountedPath::of(path);
        lock(&self.known)
            .mounts()
            .iter()
            .filter(|mount| place.lies_under(&mount.point))
            // If two mounts have the same point, the later one hides the earlier.
            .max_by_key(|mount| mount.point.as_os_str().len())
            .filter(|mount| mount.fs_type != AUTOMOUNT)
            .map(|mount| mount.dev)
    }

    /// Whether position matters on a device; `None` if that has to be found out.
    pub(crate) fn positions(&self, dev: u64) -> Option<bool> {
        let known = lock(&self.positions).get(&dev).copied().flatten();
        known.or_else(|| (!self.of(dev).rotational).then_some(false))
    }

    /// Takes on the task to find out whether position matters on a device, and to report it by [`Self::assume`]; false if the task is
    /// taken.
    pub(crate) fn claim_proof(&self, dev: u64) -> bool {
        let mut positions = lock(&self.positions);
        let is_new = !positions.contains_key(&dev);
        positions.entry(dev).or_insert(None);
        is_new
    }

    /// Whether read pages of a device stay in the page cache; `None` if that has to be found out and reported to [`Self::found`]. On a
    /// block device they do.
    pub(crate) fn keeps(&self, dev: u64) -> Option<bool> {
        let known = lock(&self.keeps).get(&dev).copied();
        known.or_else(|| self.of(dev).block.then_some(true))
    }

    /// Stores whether read pages of a device stay in the page cache.
    pub(crate) fn found(&self, dev: u64, keeps: bool) {
        lock(&self.keeps).insert(dev, keeps);
    }

    /// Stores whether position matters on a device.
    pub(crate) fn assume(&self, dev: u64, positions: bool) {
        lock(&self.positions).insert(dev, Some(positions));
    }
}

/// A lock whose holder panicked guards data that is still consistent.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl MountFacts {
    /// The mount table. If it cannot be read, no device is known, and each file has the default profile.
    fn mounts(&mut self) -> &[Mount] {
        self.mounts
            .get_or_insert_with(|| Mount::all().unwrap_or_default())
    }

    /// The mount table, read again if the known one lacks this device.
    fn mounts_with(&mut self, dev: u64) -> &[Mount] {
        if !is_among(self.mounts(), dev) {
            self.mounts = None;
        }
        self.mounts()
    }
}

/// A path, to be held against many mounts.
#[derive(Clone, Copy)]
struct MountedPath<'a> {
    path: &'a Path,
    /// True if the path has redundant slashes or dots.
    is_odd: bool,
}

impl<'a> MountedPath<'a> {
    fn of(path: &'a Path) -> Self {
        let mut pairs = path.as_os_str().as_bytes().windows(2);
        Self {
            path,
            is_odd: pairs.any(|two| matches!(two, b"//" | b"/.")),
        }
    }

    /// The same as [`Path::starts_with`], which compares components and takes ten times as long: each name of a plan is compared with each
    /// mount.
    fn lies_under(self, point: &Path) -> bool {
        let bytes = self.path.as_os_str().as_bytes();
        let prefix = point.as_os_str().as_bytes();
        match bytes.strip_prefix(prefix) {
            Some(rest) if rest.is_empty() || rest[0] == b'/' || prefix.ends_with(b"/") => true,
            _ => self.is_odd && self.path.starts_with(point),
        }
    }
}

fn is_among(mounts: &[Mount], dev: u64) -> bool {
    mounts.iter().any(|mount| mount.dev == dev)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_lies_under_a_mount_as_its_components_say() {
        let paths = [
            "/", "/a", "/ab", "/a/b", "/a//b", "//a/b", "/a/./b", "/a/.b", "/a/b/", "/a/b/c",
            "/./a/b/c", "/a/bc", "a/b", "",
        ];
        for path in paths.map(Path::new) {
            for point in ["/", "/a", "/a/b", "/a/.b", "/a/b/c"].map(Path::new) {
                let said = MountedPath::of(path).lies_under(point);
                assert_eq!(said, path.starts_with(point), "{path:?} {point:?}");
            }
        }
    }
}
