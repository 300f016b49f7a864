//! A plan that is being fetched, what the program is seen to read, and the account of both.
//!
//! Reads are not set against the plan one by one. What is kept of them is which pages were read, and which of them waited; the
//! account is made of that at the end. Every [`WINDOW`] reads the plan is judged by its outcome: if it did not have half of them,
//! the program does something else, and nothing more is fetched.
//!
//! Invariant of the account: issued = useful + late + evicted + wasted + unknown.

use std::io;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use foreread_plan::{FileId, PAGE};
use foreread_sys::thread;
use rustc_hash::FxHashSet;

use crate::Files;
use crate::fetch::{Difference, Shared};
use crate::pages::{Pages, Planned};
use crate::wants::{Trace, Wants};

/// Reads by which a plan is judged.
const WINDOW: u64 = 1000;

/// What came of a plan. Bytes are whole pages.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Account {
    /// Bytes fetched from the device.
    pub issued: u64,
    /// Of these, bytes that were in memory when the program read them.
    pub useful: u64,
    /// Bytes that the program had to wait for all the same.
    pub late: u64,
    /// Bytes that were gone from memory again when the program read them.
    pub evicted: u64,
    /// Bytes that the program did not read, which was observed all the time.
    pub wasted: u64,
    /// Bytes that the program was not seen to read, which was not observed all the time.
    pub unknown: u64,
    /// Bytes that the program waited for and that were not issued.
    pub missed: u64,
    /// Whether fetching ever had to wait for the program, for want of memory.
    pub was_full: bool,
    /// Names looked up; of these, names that took a device, and names that the program used.
    pub names: Names,
    /// Reads seen, and of these, reads that the plan had.
    pub reads: u64,
    /// Reads that the plan had.
    pub foreseen: u64,
    /// Whether the program has left the plan.
    pub has_left: bool,
    /// Files that differ from the record.
    pub differences: Vec<(FileId, Difference)>,
    /// Devices fetched from, by `st_dev`.
    pub devices: Vec<u64>,
}

/// What became of names. asked = used + unused + unknown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Names {
    /// Looked up.
    pub asked: u64,
    /// Of these, names that a device was waited for.
    pub fetched: u64,
    /// Names that the program used.
    pub used: u64,
    /// Names that the program did not use, which was observed all the time.
    pub unused: u64,
    /// Names that the program was not seen to use, which was not observed all the time.
    pub unknown: u64,
}

/// A plan being fetched.
pub struct Session {
    shared: Arc<Shared>,
    planned: Arc<Mutex<Planned>>,
    read: Pages,
    waited: Pages,
    named: FxHashSet<FileId>,
    reads: u64,
    foreseen: u64,
    /// Reads of the current window, and of these, reads that the plan had.
    window: (u64, u64),
    /// Reads since the last one of a page that was not read before.
    idle: u64,
    has_left: bool,
    has_strayed: bool,
    is_unobserved: bool,
}

impl Session {
    /// Starts fetching what `trace` reads; at most `budget` pages are ahead of the program.
    ///
    /// # Errors
    /// When no thread can be started.
    pub fn start(
        trace: impl Trace + 'static,
        files: Arc<dyn Files>,
        budget: u64,
    ) -> io::Result<Self> {
        let shared = Arc::new(Shared::new(Arc::clone(&files), budget.max(1)));
        let planned = Arc::<Mutex<Planned>>::default();
        let (adds, plans) = (Arc::clone(&shared), Arc::clone(&planned));
        thread::builder("foreread-wants").spawn(move || {
            let mut wants = Wants::new(trace, &*files);
            let mut batch = Vec::new();
            while wants.next(&plans, &mut batch) {
                if !adds.add(&mut batch) {
                    return;
                }
            }
            adds.complete();
        })?;
        Ok(Self {
            shared,
            planned,
            read: Pages::default(),
            waited: Pages::default(),
            named: FxHashSet::default(),
            reads: 0,
            foreseen: 0,
            window: (0, 0),
            idle: 0,
            has_left: false,
            has_strayed: false,
            is_unobserved: false,
        })
    }

    /// The program has read these pages by so many reads, and waited for a device or not.
    pub fn read(&mut self, file: FileId, pages: Range<u64>, waited: bool, count: u64) {
        let is_planned = self.planned().all.has_any(file, pages.clone());
        let new = self.read.add(file, pages.clone());
        if new > 0 {
            if waited {
                self.waited.add(file, pages);
            }
            if is_planned {
                self.shared.passed(new);
            }
            self.has_strayed |= waited && !is_planned && self.shared.is_complete();
            self.idle = 0;
        } else {
            self.idle += count;
        }
        let foreseen = if is_planned { count } else { 0 };
        self.reads += count;
        self.foreseen += foreseen;
        self.window.0 += count;
        self.window.1 += foreseen;
        if self.window.0 >= WINDOW {
            self.has_left |= self.window.1 < self.window.0 / 2;
            self.window = (0, 0);
            if self.has_left {
                self.shared.stop();
            }
        }
    }

    /// Whether the plan has pages of this file by calls, so that its path was found to lead to a regular file.
    pub fn plans(&self, file: FileId) -> bool {
        self.planned().files.contains(&file)
    }

    /// The program has used a name.
    pub fn named(&mut self, file: FileId) {
        self.named.insert(file);
    }

    fn planned(&self) -> std::sync::MutexGuard<'_, Planned> {
        self.planned.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the program has left the plan.
    pub fn has_left(&self) -> bool {
        self.has_left
    }

    /// Whether the program has waited for anything that the plan does not have.
    pub fn has_strayed(&self) -> bool {
        self.has_strayed
    }

    /// Whether there is nothing more to fetch, nor anything new to be seen of the program.
    pub fn is_over(&self) -> bool {
        self.idle >= WINDOW && self.shared.is_done()
    }

    /// The program was not observed, or is not from now on: nobody can say whether it reads what it was not seen to read.
    pub fn look_away(&mut self) {
        self.is_unobserved = true;
    }

    /// Ends fetching; the account. Threads that a file system holds up end with the process.
    pub fn finish(self) -> Account {
        self.shared.stop();
        let mut state = self.shared.lock();
        let mut account = Account {
            reads: self.reads,
            foreseen: self.foreseen,
            has_left: self.has_left,
            was_full: state.was_full(),
            differences: std::mem::take(&mut state.differences),
            devices: state.devices.iter().copied().collect(),
            ..Account::default()
        };
        let (mut issued, mut read, mut late) = (0, 0, 0);
        for (file, pages) in &state.issued {
            issued += pages.end - pages.start;
            read += self.read.count(*file, pages.clone());
            late += self.waited.count(*file, pages.clone());
        }
        account.issued = issued * PAGE;
        account.late = late * PAGE;
        account.useful = (read - late) * PAGE;
        let left = self.waited.common(&self.planned().left);
        account.missed = self.waited.len().saturating_sub(late + left) * PAGE;
        let unread = (issued - read) * PAGE;
        *if self.is_unobserved {
            &mut account.unknown
        } else {
            &mut account.wasted
        } = unread;
        let names = &mut account.names;
        for (file, waited) in &state.names {
            names.asked += 1;
            names.fetched += u64::from(*waited);
            names.used += u64::from(self.named.contains(file));
        }
        let unused = names.asked - names.used;
        *if self.is_unobserved {
            &mut names.unknown
        } else {
            &mut names.unused
        } = unused;
        account
    }
}
