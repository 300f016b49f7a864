//! What is known of a rank's part of the collective cache, for the backend that fills it and for whoever reports of it.

use std::collections::{BTreeMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use foreread_plan::FileId;
use foreread_segment::{Counts, Mode, Segment};

/// A rank's segment, and which files it is for.
#[derive(Clone, Debug)]
pub struct Collective(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    segment: Segment,
    /// What was decided by the user, whatever the file systems are.
    decided: Option<Mode>,
    /// Files that MPI is asked for.
    asked: Mutex<HashSet<FileId>>,
    /// What was found out of file systems, by their names.
    homes: Mutex<BTreeMap<String, Mode>>,
    /// Whether nobody can take anything from it.
    is_useless: AtomicBool,
}

impl Collective {
    /// Of this segment. Where it is not `decided`, each file system is tried.
    pub fn new(segment: Segment, decided: Option<Mode>) -> Self {
        Self(Arc::new(Inner {
            segment,
            decided,
            asked: Mutex::default(),
            homes: Mutex::default(),
            is_useless: AtomicBool::new(false),
        }))
    }

    /// MPI is asked for this file: only what is read through MPI is taken from the cache.
    pub fn ask(&self, file: FileId) {
        lock(&self.0.asked).insert(file);
    }

    pub(super) fn is_asked(&self, file: FileId) -> bool {
        lock(&self.0.asked).contains(&file)
    }

    /// The program has no library that takes pages from it: nothing more is filled.
    pub fn give_up(&self) {
        self.0.is_useless.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_useless(&self) -> bool {
        self.0.is_useless.load(Ordering::Relaxed)
    }

    /// The segment.
    pub fn segment(&self) -> &Segment {
        &self.0.segment
    }

    /// What was done.
    pub fn counts(&self) -> Counts {
        self.0.segment.counts()
    }

    /// Where the files of each file system met belong, by its name.
    pub fn homes(&self) -> BTreeMap<String, Mode> {
        lock(&self.0.homes).clone()
    }

    pub(super) fn decided(&self) -> Option<Mode> {
        self.0.decided
    }

    /// Whether anything belongs into the segment.
    pub(super) fn is_used(&self) -> bool {
        lock(&self.0.homes)
            .values()
            .any(|&mode| mode == Mode::Collective)
    }

    /// Where files on a file system of this name belong, those that are read past the page cache or the others.
    pub(super) fn found(&self, name: String, direct: bool, mode: Mode) {
        let name = if direct {
            format!("{name}, read with O_DIRECT")
        } else {
            name
        };
        let mut homes = lock(&self.0.homes);
        homes.insert(name, mode);
        let any = homes.values().any(|&one| one == Mode::Collective);
        let all = if any { Mode::Collective } else { Mode::Plain };
        self.0.segment.set_mode(all);
    }
}

/// What a thread that panicked left is as good as it was before.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
