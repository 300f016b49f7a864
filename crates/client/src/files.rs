//! The files of a client, by identity and by number.
//!
//! Invariant: one number for one file (device and inode), however often and by whatever name or
//! descriptor it is registered, and another for what is read of it past the page cache; no number is given
//! twice.

use std::collections::HashMap;
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::path::{Path, PathBuf};

use foreread_plan::FileId;
use foreread_sys::device::Device;
use foreread_sys::file::FileFacts;
use rustix::fs::OFlags;

use crate::Error;
use crate::threads::{Addition, Threads};

/// Files kept open at a time; more are opened by name when they are fetched from. Well below the
/// 1024 descriptors a process usually may have, of which the hint threads use some hundreds.
const KEPT: usize = 256;

/// Device and inode.
type Identity = (u64, u64);

/// How a file is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Way {
    /// Through the page cache.
    Cached,
    /// Past it (`O_DIRECT`): the threads do not know of such a file, for fetching it would be for nothing.
    Direct,
}

#[derive(Debug)]
struct File {
    identity: Identity,
    way: Way,
    path: PathBuf,
    kept: bool,
    /// Times it was added and not removed.
    uses: u64,
    /// The kernel's read-ahead for it, in bytes, once that was asked for.
    read_ahead: Option<u64>,
}

/// All of them.
#[derive(Debug, Default)]
pub(crate) struct Files {
    numbers: HashMap<(Identity, Way), FileId>,
    known: HashMap<FileId, File>,
    next: u32,
    kept: usize,
}

impl Files {
    /// Register the file with this name.
    pub(crate) fn add_path(&mut self, path: &Path, threads: &Threads) -> Result<FileId, Error> {
        let refused = |source| Error::File {
            path: path.to_owned(),
            source,
        };
        // The working directory may change before the file is opened again.
        let name = path.canonicalize().map_err(refused)?;
        let facts = rustix::fs::stat(&name).map_err(|error| refused(error.into()))?;
        let identity = (facts.st_dev, facts.st_ino);
        self.add(identity, Way::Cached, name.clone(), name, threads)
            .map_err(refused)
    }

    /// Register an open file of the calling thread.
    pub(crate) fn add_fd(
        &mut self,
        fd: BorrowedFd<'_>,
        threads: &Threads,
    ) -> Result<FileId, Error> {
        let number = fd.as_raw_fd();
        let refused = |source| Error::File {
            path: format!("descriptor {number}").into(),
            source,
        };
        let facts = FileFacts::of(fd).map_err(refused)?;
        let flags = rustix::fs::fcntl_getfl(fd).map_err(|error| refused(error.into()))?;
        let way = if flags.contains(OFlags::DIRECT) {
            Way::Direct
        } else {
            Way::Cached
        };
        // Not /proc/self: the main thread may have ended, or have another table.
        let thread = rustix::thread::gettid().as_raw_nonzero();
        let now = PathBuf::from(format!("/proc/self/task/{thread}/fd/{number}"));
        let path = std::fs::read_link(&now).map_err(refused)?;
        self.add((facts.dev, facts.ino), way, now, path, threads)
            .map_err(refused)
    }

    fn add(
        &mut self,
        identity: Identity,
        way: Way,
        now: PathBuf,
        path: PathBuf,
        threads: &Threads,
    ) -> io::Result<FileId> {
        if let Some(&file) = self.numbers.get(&(identity, way)) {
            if let Some(known) = self.known.get_mut(&file) {
                known.uses += 1;
            }
            return Ok(file);
        }
        let file = FileId(self.next);
        let kept = way == Way::Cached && self.kept < KEPT;
        if way == Way::Cached {
            threads.add(Addition {
                file,
                now,
                path: path.clone(),
                keep: kept,
            })?;
        }
        self.next += 1;
        self.kept += usize::from(kept);
        self.numbers.insert((identity, way), file);
        self.known.insert(
            file,
            File {
                identity,
                way,
                path,
                kept,
                uses: 1,
                read_ahead: None,
            },
        );
        Ok(file)
    }

    /// Take one registration back; whether it was the last. `None` if there is no such file.
    pub(crate) fn remove(&mut self, file: FileId, threads: &Threads) -> Option<bool> {
        let known = self.known.get_mut(&file)?;
        known.uses -= 1;
        if known.uses > 0 {
            return Some(false);
        }
        let known = self.known.remove(&file)?;
        self.numbers.remove(&(known.identity, known.way));
        self.kept -= usize::from(known.kept);
        if known.way == Way::Cached {
            threads.remove(file);
        }
        Some(true)
    }

    pub(crate) fn identity(&self, file: FileId) -> Option<Identity> {
        Some(self.known.get(&file)?.identity)
    }

    /// The kernel's read-ahead for a file, in bytes. What the system has on its device is looked up once.
    pub(crate) fn read_ahead(&mut self, file: FileId) -> Option<u64> {
        let File {
            identity,
            read_ahead,
            ..
        } = self.known.get_mut(&file)?;
        Some(*read_ahead.get_or_insert_with(|| Device::of(identity.0).read_ahead))
    }

    pub(crate) fn has(&self, file: FileId) -> bool {
        self.known.contains_key(&file)
    }

    /// What to call a file in a report.
    pub(crate) fn name(&self, file: FileId) -> String {
        match self.known.get(&file) {
            Some(known) => known.path.display().to_string(),
            None => format!("file number {}", file.0),
        }
    }
}
