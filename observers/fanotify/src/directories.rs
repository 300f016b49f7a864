//! Paths of directories by their handles.
//!
//! Invariants: bounded; no descriptor is kept; a path is one by which this process finds the very directory.
//!
//! Data flow: a file system's number and a handle → a path, looked up once in [`AGE`].

use std::collections::HashMap;
use std::num::NonZeroUsize;
use std::os::fd::{AsFd, AsRawFd};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use foreread_sys::fanotify::{Handle, open_by_handle};
use foreread_sys::mounts::Mount;
use foreread_sys::way::{self, Links};
use lru::LruCache;
use rustix::fs::fstat;

/// Directories with a stored path: 200 bytes each.
const KEPT: NonZeroUsize = NonZeroUsize::new(8192).unwrap();
/// Time for which a path is valid. A renamed directory is known by its former name for as long.
const AGE: Duration = Duration::from_secs(10);

/// The paths.
pub(super) struct Directories {
    /// By the file system's number and the handle; `None` for a directory that cannot be reached from here.
    paths: LruCache<Box<[u8]>, (Option<PathBuf>, Instant)>,
    /// Mount points of file systems.
    mounts: HashMap<[u8; 8], PathBuf>,
}

impl Default for Directories {
    fn default() -> Self {
        Self {
            paths: LruCache::new(KEPT),
            mounts: HashMap::new(),
        }
    }
}

impl Directories {
    /// The table of mounts has changed: forgets all paths, and the mount points that are not among these.
    pub(super) fn forget(&mut self, mounts: &[Mount]) {
        self.mounts
            .retain(|_, point| mounts.iter().any(|mount| mount.point == *point));
        self.paths.clear();
    }

    /// A file system is mounted here.
    pub(super) fn mounted(&mut self, system: [u8; 8], point: &Path) {
        self.mounts.insert(system, point.to_path_buf());
    }

    /// The path of a directory, and whether it was looked up just now.
    pub(super) fn path(
        &mut self,
        system: [u8; 8],
        directory: &Handle<'_>,
    ) -> Option<(&Path, bool)> {
        let key = key(system, directory);
        let now = Instant::now();
        let known = self.paths.peek(&key);
        let fresh = known.is_none_or(|(_, since)| now.duration_since(*since) > AGE);
        if fresh {
            let path = self.find(system, directory);
            self.paths.put(key.clone(), (path, now));
        }
        let (path, _) = self.paths.get(&key)?;
        path.as_deref().map(|path| (path, fresh))
    }

    /// The path of a directory is not right any more.
    pub(super) fn drop_path(&mut self, system: [u8; 8], directory: &Handle<'_>) {
        self.paths.pop(&key(system, directory));
    }

    fn find(&self, system: [u8; 8], directory: &Handle<'_>) -> Option<PathBuf> {
        let mount = super::open(self.mounts.get(&system)?).ok()?;
        let found = open_by_handle(mount.as_fd(), directory).ok()?;
        let path = std::fs::read_link(format!("/proc/self/fd/{}", found.as_raw_fd())).ok()?;
        let there = way::find(&path, Links::Refused).ok()?;
        let (there, here) = (fstat(&there).ok()?, fstat(&found).ok()?);
        let same = (there.st_dev, there.st_ino) == (here.st_dev, here.st_ino);
        (same && path.is_absolute()).then_some(path)
    }
}

fn key(system: [u8; 8], directory: &Handle<'_>) -> Box<[u8]> {
    let mut key = system.to_vec();
    key.extend(directory.key());
    key.into()
}
