//! A rank's part of the collective cache, as known to the backend that fills it and to reports.

use std::collections::{BTreeMap, HashSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use foreread_plan::FileId;
use foreread_segment::{Counts, Mode, Segment};

/// A rank's segment, with the files that it is for.
#[derive(Clone, Debug)]
pub struct Collective(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    segment: Segment,
    /// The user's decision for all file systems, if there is one.
    decided: Option<Mode>,
    /// Files that are accessed through MPI, as a set and in the order in which they were first accessed.
    asked: Mutex<(HashSet<FileId>, Vec<FileId>)>,
    /// The results for file systems, by their names.
    homes: Mutex<BTreeMap<String, Mode>>,
    /// True if no library can take pages from it.
    is_useless: AtomicBool,
}

impl Collective {
    /// The part with this segment. Without a `decided` place each file system is tested.
    pub fn new(segment: Segment, decided: Option<Mode>) -> Self {
        Self(Arc::new(Inner {
            segment,
            decided,
            asked: Mutex::default(),
            homes: Mutex::default(),
            is_useless: AtomicBool::new(false),
        }))
    }

    /// Notes that this file is accessed through MPI: only reads through MPI use the cache.
    pub fn ask(&self, file: FileId) {
        let (asked, order) = &mut *lock(&self.0.asked);
        if asked.insert(file) {
            order.push(file);
        }
    }

    /// The files that are accessed through MPI, without the first `known` ones.
    pub(super) fn asked_after(&self, known: usize) -> Vec<FileId> {
        lock(&self.0.asked).1[known..].to_vec()
    }

    pub(super) fn is_asked(&self, file: FileId) -> bool {
        lock(&self.0.asked).0.contains(&file)
    }

    /// Ends filling: the program has no library that takes pages from the cache.
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

    /// The segment's counts.
    pub fn counts(&self) -> Counts {
        self.0.segment.counts()
    }

    /// The place for files on each known file system, by its name.
    pub fn homes(&self) -> BTreeMap<String, Mode> {
        lock(&self.0.homes).clone()
    }

    pub(super) fn decided(&self) -> Option<Mode> {
        self.0.decided
    }

    /// True if files on any file system belong to the segment.
    pub(super) fn is_used(&self) -> bool {
        lock(&self.0.homes)
            .values()
            .any(|&mode| mode == Mode::Collective)
    }

    /// Stores the place for files on a file system of this name: for those that are read past the page cache if `direct`, or for the
    /// others.
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

/// A lock whose holder panicked guards data that is still consistent.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
