//! The program's observed reads, compared with its plan: whether it still follows the plan, and at the end the account.
//!
//! Reads are not matched with the plan one by one. Only the sets of pages read, and of pages waited for, are kept; the account is
//! computed from them at the end. The plan is judged after every [`WINDOW`] reads: if it did not contain half of them, the program
//! does something else, and fetching stops.
//!
//! Invariant of the account: issued = useful + late + evicted + wasted + infill + unknown. No threads, clocks or system calls.
//!
//! Data flow: reads seen → [`ReadsSeen::read`] → [`News`] for those who fetch; at the end [`ReadsSeen::account`].

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::ops::Range;

use foreread_plan::{FileId, Ledger, NameLedger, PAGE};
use rustc_hash::FxHashSet;

use crate::fates::{Fate, Fates, Masks};
use crate::fetch::Fetching;
use crate::pages::{Pages, Planned, masks};
use crate::worker::Difference;

/// Reads by which a plan is judged.
pub(crate) const WINDOW: u64 = 1000;

/// The account of a plan.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Account {
    /// The ledger of the fetched bytes.
    pub ledger: Ledger,
    /// True if fetching ever waited for the program because memory was full.
    pub was_full: bool,
    /// Names looked up. Observers report only names that the program waited for: those used are those late.
    pub names: NameLedger,
    /// Reads seen.
    pub reads: u64,
    /// Of these, reads that the plan contains.
    pub foreseen: u64,
    /// True if the program has left the plan.
    pub has_left: bool,
    /// The point at which it left, if it did.
    pub left: Option<Left>,
    /// Files that differ from the record.
    pub differences: Vec<(FileId, Difference)>,
    /// Devices fetched from, by `st_dev`.
    pub devices: Vec<u64>,
    /// Fates of the pages of the files with most waiting in the recorded run.
    pub fates: Vec<Fates>,
}

/// The account so far, in bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SoFar {
    /// In memory when the program read them.
    pub useful: u64,
    /// Waited for all the same.
    pub late: u64,
    /// Not read; `None` while they may still be read.
    pub wasted: Option<u64>,
    /// Waited for, and not fetched.
    pub missed: u64,
}

/// The point at which a program has left its plan: the first read of the judged window that the plan did not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Left {
    /// The file read.
    pub file: FileId,
    /// The first page read.
    pub page: u64,
    /// Reads seen before.
    pub reads: u64,
}

#[cfg(test)]
impl Account {
    /// True if each byte and each name is in one column.
    pub(crate) fn is_closed(&self) -> bool {
        self.ledger.is_closed() && self.names.is_closed()
    }
}

/// The program's reads seen so far.
#[derive(Default)]
pub(crate) struct ReadsSeen {
    pub(crate) waited: Pages,
    named: FxHashSet<FileId>,
    reads: u64,
    foreseen: u64,
    /// Reads of the current window, and of these, reads that the plan had.
    window: (u64, u64),
    /// Reads since the last one of a page that was not read before.
    idle: u64,
    /// The first read of the current window, or of the one by which the plan was left, that the plan did not have.
    left: Option<Left>,
    pub(crate) has_left: bool,
    pub(crate) has_strayed: bool,
    /// True if the plan contains only a part of the program's reads, so that unexpected reads do not end it.
    pub(crate) is_partial: bool,
    pub(crate) is_unobserved: bool,
    /// Files whose pages may have been read unseen.
    pub(crate) doubted: FxHashSet<FileId>,
}

/// The consequences of a read for fetching.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct News {
    /// Planned pages that were read for the first time.
    pub(crate) passed: u64,
    /// At the end of a window: whether fetching goes on.
    pub(crate) holds: Option<bool>,
}

impl ReadsSeen {
    /// The program has read these pages in `count` reads, and waited for a device if `waited`. `new` are the pages that it has read for the
    /// first time. `is_complete` is true if the whole plan is known.
    pub(crate) fn read(
        &mut self,
        file: FileId,
        (pages, new): (Range<u64>, &[Range<u64>]),
        (waited, count): (bool, u64),
        planned: &Planned,
        is_complete: bool,
    ) -> News {
        let mut news = News::default();
        let is_planned = planned.all.has_any(file, pages.clone());
        if new.is_empty() {
            self.idle += count;
        } else {
            if is_planned {
                let passed = new.iter();
                let passed = passed.map(|new| planned.all.count(file, new.clone()));
                news.passed = passed.sum();
            }
            if waited {
                self.waited.add(file, pages.clone());
            }
            self.has_strayed |= waited && !is_planned && is_complete;
            self.idle = 0;
        }
        if !is_planned && self.left.is_none() {
            let page = pages.start;
            let reads = self.reads;
            self.left = Some(Left { file, page, reads });
        }
        let foreseen = if is_planned { count } else { 0 };
        self.reads += count;
        self.foreseen += foreseen;
        self.window.0 += count;
        self.window.1 += foreseen;
        if self.window.0 >= WINDOW {
            self.has_left |= !self.is_partial && self.window.1 < self.window.0 / 2;
            self.window = (0, 0);
            if !self.has_left {
                self.left = None;
            }
            news.holds = Some(!self.has_left);
        }
        news
    }

    /// The program has waited for a name.
    pub(crate) fn named(&mut self, file: FileId) {
        self.named.insert(file);
    }

    /// True if the program has read no new page for a window's length.
    pub(crate) fn is_idle(&self) -> bool {
        self.idle >= WINDOW
    }

    /// The account so far.
    pub(crate) fn so_far(&self, state: &Fetching, planned: &Planned) -> SoFar {
        let (pages, _) = self.outcome(state, planned);
        SoFar {
            useful: pages.useful * PAGE,
            late: pages.late * PAGE,
            // As long as the plan is followed, the rest may still be read.
            wasted: self.has_left.then_some(pages.unread() * PAGE),
            missed: pages.missed * PAGE,
        }
    }

    /// The account of what was fetched.
    pub(crate) fn account(&self, state: &mut Fetching, planned: &Planned) -> Account {
        let (pages, issued) = self.outcome(state, planned);
        let mut names = NameLedger::default();
        for (file, waited) in &state.names {
            names.asked += 1;
            names.fetched += u64::from(*waited);
            names.late += u64::from(self.named.contains(file));
        }
        names.used = names.late;
        names.unknown = names.asked - names.used;
        Account {
            ledger: Ledger::of_pages(pages),
            was_full: state.was_full(),
            names,
            reads: self.reads,
            foreseen: self.foreseen,
            has_left: self.has_left,
            left: self.left.filter(|_| self.has_left),
            differences: std::mem::take(&mut state.differences),
            devices: state.devices.iter().copied().collect(),
            fates: self.fates(&issued, state, planned),
        }
    }

    /// The outcome of the plan, in pages, and the set of pages fetched, in one pass over them.
    fn outcome(&self, state: &Fetching, planned: &Planned) -> (Ledger, Pages) {
        let mut outcome = Ledger::default();
        let mut issued = Pages::default();
        for (file, pages) in &state.issued {
            for (chunk, mask) in masks(pages.clone()) {
                issued.add_mask(*file, chunk, mask);
                let masks = self.masks(mask, (*file, chunk), state, planned);
                enter(&mut outcome, &masks);
            }
        }
        outcome.missed = self.waited.outside([&issued, &planned.left]);
        (outcome, issued)
    }

    /// The masks of a chunk, with these pages issued.
    fn masks(
        &self,
        issued: u64,
        (file, chunk): (FileId, u64),
        state: &Fetching,
        planned: &Planned,
    ) -> Masks {
        Masks {
            issued,
            read: state.read.mask(file, chunk),
            waited: self.waited.mask(file, chunk),
            planned: planned.all.mask(file, chunk),
            left: planned.left.mask(file, chunk),
            is_doubtful: self.is_unobserved || self.doubted.contains(&file),
        }
    }

    /// Fates of the pages of the files with most waiting in the recorded run.
    fn fates(&self, issued: &Pages, state: &Fetching, planned: &Planned) -> Vec<Fates> {
        let mut files: Vec<(Reverse<u64>, FileId)> = planned
            .waited
            .iter()
            .map(|(file, waited)| (Reverse(*waited), *file))
            .collect();
        files.sort_unstable();
        files.truncate(Fates::FILES);
        let mut chunks: BTreeMap<FileId, BTreeMap<u64, Masks>> = BTreeMap::new();
        for (_, file) in files {
            chunks.insert(file, BTreeMap::new());
        }
        for (file, chunk) in issued.chunks().chain(state.read.chunks()) {
            if let Some(of) = chunks.get_mut(&file) {
                of.entry(chunk).or_insert_with(|| {
                    self.masks(issued.mask(file, chunk), (file, chunk), state, planned)
                });
            }
        }
        let fates = chunks.into_iter().filter(|(_, of)| !of.is_empty());
        fates.map(|(file, of)| Fates::of(file, &of)).collect()
    }
}

/// Adds pages that were issued, by what became of them. A page that was fetched several times counts each time.
fn enter(ledger: &mut Ledger, pages: &Masks) {
    let count = |fate| u64::from(pages.of(fate).count_ones());
    let mut more = Ledger {
        useful: count(Fate::Useful),
        late: count(Fate::Late),
        wasted: count(Fate::Wasted),
        unknown: count(Fate::Unknown),
        infill: u64::from(pages.infill().count_ones()),
        ..Ledger::default()
    };
    more.issued = more.judged();
    *ledger += more;
}
