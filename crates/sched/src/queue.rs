//! The plan queue: the expected accesses, and the program's position among them.
//!
//! A source pushes entries in the order it expects them; each gets the next *ordinal*, AASFP's call ID (long paper, §5.1). The program's
//! reads are matched with the entries by file and page, earliest entry first. Matching tolerates the habits of real programs:
//!
//! - threads and processes interleave differently, and samples have no order: an entry up to [`REORDER`] behind the
//!   position still matches, and only then expires;
//! - accesses are skipped: the entries passed over expire by ordinal, and a page read again is matched
//!   with what is still ahead of them;
//! - accesses are inserted: they match nothing and move nothing;
//! - the same page is read again and again (the root of a b-tree), and such matches run ahead:
//!   the position is the second lowest of the last few matches, so it takes nearly all to move it;
//! - a sample finds pages long before the recorded run's did, or long after: such *loose* matches carry
//!   the position up to the next strict entry and no further, unless nothing but samples comes.
//!
//! Lists are long, so entries are small: 16 bytes, and 6 more in the index. Accesses larger than
//! [`ENTRY_PAGES`] become several entries.
//!
//! Invariant: `entries[n]` has the ordinal `base + n`. Unconsumed entries with the same file and first page form a ring in their order, and
//! `index` holds the last of each ring, whose successor is the first.

mod given_up;
mod unaided;

use std::collections::VecDeque;
use std::ops::Range;

use foreread_plan::{Expected, FileId, Odds, Pattern, ThreadId};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use crate::index::Index;

/// Distance behind the position at which an entry may still be read, in entries. Samples of mapped pages have no inner order, and hold
/// thousands of pages.
pub(crate) const REORDER: u64 = 4096;
/// Pages of the largest entry (1 MiB, as the largest request).
pub(crate) const ENTRY_PAGES: u64 = 256;
/// The largest page number of a file: its offset in bytes is a signed 64-bit number.
const LAST_PAGE: u64 = (1 << 51) - 1;
/// Limit of entries that the queue can distinguish.
const MOST: usize = 1 << 30;
/// Number of recent matches that determine the position: it is the second lowest of them, so that one thread, or a page read again and
/// again, does not push it ahead.
const MATCHES: usize = 7;
/// After this many observations in a row that matched loose entries only, strict entries no longer hold the position back:
/// the program may have left them out. A sample is hundreds of observations. Without this bound netcdf, link and lmdb
/// gained nothing in one run of three.
const LOOSE_ONLY: u32 = 1024;
/// A repeated read of a page may match an entry at most this far ahead, in entries. A plan names a page once, however many small reads of
/// it follow each other, and the position lags by seven. Without this bound the position in samtools was lost after a fifth of its reads,
/// and 13 of 23 MiB were wasted.
const AGAIN: u64 = 16;
/// A plan counts as concurrent if its last pushes, this many, came from more than one thread or contained a sample.
const CONCURRENCY_WINDOW: u64 = 64;
/// Number of files whose last matched range is remembered, a bound on memory.
const RECENT_FILES: usize = 1 << 16;

/// The state of an entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EntryState {
    /// Disclosed; nothing was done for it yet.
    Waiting,
    /// Admitted: pending or in flight, its pages held in the budget.
    Admitted,
    /// Looked at and left to the program: only announced, too late, or of a file that is gone.
    Left,
    /// The program has read it.
    Consumed,
}

/// One expected access, or a part of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The file.
    pub file: FileId,
    /// First page.
    pub first: u64,
    /// Pages; 0 announces that the file will be opened.
    pub pages: u32,
    /// Its relation to its neighbours.
    pub pattern: Pattern,
    /// Its state.
    pub state: EntryState,
}

impl Entry {
    /// The pages expected to be read.
    pub fn range(&self) -> Range<u64> {
        self.first..self.first + u64::from(self.pages)
    }
}

/// An entry as it is stored.
#[derive(Clone, Copy, Debug)]
struct Packed {
    /// From the lowest bit: the state (2 bits), the pattern (2), pages (9), first page (51).
    what: u64,
    file: FileId,
    /// The low bits of the ordinal of the next entry in the ring.
    next: u32,
}

const STATE: u64 = 0b11;
const PATTERN: u32 = 2;
const PAGES: u32 = 4;
const FIRST: u32 = 13;

impl Packed {
    /// An entry for `pages`, a part of the expected access.
    fn new(expected: &Expected, pages: &Range<u64>, ordinal: u64) -> Self {
        let count = pages.end.saturating_sub(pages.start);
        Self {
            what: pages.start << FIRST
                | count << PAGES
                | (expected.pattern as u64) << PATTERN
                | EntryState::Waiting as u64,
            file: expected.file,
            next: ordinal as u32,
        }
    }

    fn first(&self) -> u64 {
        self.what >> FIRST
    }

    fn pages(&self) -> u32 {
        (self.what >> PAGES) as u32 & ((1 << (FIRST - PAGES)) - 1)
    }

    fn state(&self) -> EntryState {
        match self.what & STATE {
            0 => EntryState::Waiting,
            1 => EntryState::Admitted,
            2 => EntryState::Left,
            _ => EntryState::Consumed,
        }
    }

    fn pattern(&self) -> Pattern {
        match self.what >> PATTERN & 0b11 {
            0 => Pattern::Scattered,
            1 => Pattern::Sequential,
            _ => Pattern::Loose,
        }
    }

    fn entry(&self) -> Entry {
        Entry {
            file: self.file,
            first: self.first(),
            pages: self.pages(),
            pattern: self.pattern(),
            state: self.state(),
        }
    }

    fn starts(&self, file: FileId, first: u64) -> bool {
        self.file == file && self.first() == first
    }

    fn hash(&self) -> u64 {
        hash(self.file, self.first())
    }
}

/// A folded multiplication: all bits of the product depend on all of the page.
fn hash(file: FileId, page: u64) -> u64 {
    let key = page ^ u64::from(file.0).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let product = u128::from(key ^ 0x2436_a886_85a3_08d3) * 0xd6e8_feb8_6659_fd93;
    (product >> 64) as u64 ^ product as u64
}

/// Result of matching a read with the plan.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Matched {
    /// The entries it consumed, with the state they had before.
    pub consumed: SmallVec<[(u64, Taken); 1]>,
    /// Entries held in the budget that dropped out because the read itself passed them over, and their pages.
    pub passed: SmallVec<[(u64, u64); 1]>,
    /// True if the plan had the read: it consumed an entry, or repeated the last one.
    pub known: bool,
}

/// An entry at the moment of its read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Taken {
    /// Pages of the entry.
    pub pages: Range<u64>,
    /// True if its pages counted in the budget.
    pub admitted: bool,
    /// Its relation to its neighbours.
    pub pattern: Pattern,
}

/// The last few matches.
#[derive(Debug, Default)]
struct Matches {
    ordinals: [u64; MATCHES],
    count: usize,
}

impl Matches {
    fn add(&mut self, ordinal: u64) {
        self.ordinals[self.count % MATCHES] = ordinal;
        self.count += 1;
    }

    /// The second lowest; of one, that.
    fn trusted(&self) -> u64 {
        let (mut lowest, mut second) = (u64::MAX, u64::MAX);
        for &ordinal in &self.ordinals[..self.count.min(MATCHES)] {
            second = second.min(ordinal.max(lowest));
            lowest = lowest.min(ordinal);
        }
        if self.count == 1 { lowest } else { second }
    }
}

/// The window of expected accesses around the program's position.
#[derive(Debug)]
pub struct Queue {
    capacity: usize,
    entries: VecDeque<Packed>,
    base: u64,
    index: Index,
    /// Disclosed, and waiting for room.
    rest: VecDeque<Expected>,
    position: u64,
    /// Matches of strict entries, and of loose ones.
    matches: Matches,
    loose: Matches,
    /// Observations since the last that matched a strict entry.
    loose_only: u32,
    /// From the position to here every entry is loose, empty or consumed.
    strict: u64,
    recent: FxHashMap<FileId, Range<u64>>,
    last_thread: Option<ThreadId>,
    /// True if the order of entries is unreliable.
    unordered: bool,
    switched_at: Option<u64>,
    /// Pages of the longest entry since the queue was last empty.
    longest: u64,
    /// From which ordinal on entries have other odds than those before.
    odds: VecDeque<(u64, Odds)>,
}

impl Queue {
    /// A queue that holds up to `capacity` entries, of 22 bytes each; at most 2^30.
    pub fn new(capacity: usize) -> Self {
        let capacity = capacity.clamp(1, MOST);
        Self {
            capacity,
            entries: VecDeque::new(),
            base: 0,
            index: Index::new(capacity),
            rest: VecDeque::new(),
            position: 0,
            matches: Matches::default(),
            loose: Matches::default(),
            loose_only: 0,
            strict: 0,
            recent: FxHashMap::default(),
            last_thread: None,
            unordered: false,
            switched_at: None,
            longest: 0,
            odds: VecDeque::new(),
        }
    }

    /// A queue with an unreliable order, as if several threads read: a guessing source follows several places at a time and discloses in
    /// the order in which it finds the reads.
    pub(crate) fn unordered(capacity: usize) -> Self {
        Self {
            unordered: true,
            ..Self::new(capacity)
        }
    }

    /// Number of entries that still fit.
    pub fn room(&self) -> usize {
        if self.rest.is_empty() {
            self.capacity - self.entries.len()
        } else {
            0
        }
    }

    /// The ordinal of the next access the program is expected to make (the paper's `i`).
    pub fn position(&self) -> u64 {
        self.position
    }

    /// The ordinal the next pushed entry will get.
    pub fn end(&self) -> u64 {
        self.base + self.entries.len() as u64
    }

    /// The lowest ordinal still worth fetching: entries before it have expired, unless several threads read or samples were taken, whose
    /// order may differ this time.
    pub fn floor(&self) -> u64 {
        let concurrent = self
            .switched_at
            .is_some_and(|at| self.end() - at <= CONCURRENCY_WINDOW.max(self.entries.len() as u64));
        if concurrent || self.unordered {
            self.position.saturating_sub(REORDER)
        } else {
            self.position
        }
    }

    /// The entry with this ordinal, while the queue holds it.
    pub fn get(&self, ordinal: u64) -> Option<Entry> {
        let at = ordinal.checked_sub(self.base)?;
        Some(self.entries.get(usize::try_from(at).ok()?)?.entry())
    }

    /// The odds of the entry with this ordinal, while the queue holds it.
    pub(crate) fn odds(&self, ordinal: u64) -> Odds {
        let after = self.odds.partition_point(|&(from, _)| from <= ordinal);
        let run = after.checked_sub(1).and_then(|at| self.odds.get(at));
        run.map_or(Odds::SURE, |&(_, odds)| odds)
    }

    /// Move an entry that the program has not read on in its life.
    pub(crate) fn set_state(&mut self, ordinal: u64, state: EntryState) {
        if let Some(at) = ordinal.checked_sub(self.base)
            && let Some(entry) = self.entries.get_mut(at as usize)
        {
            entry.what = entry.what & !STATE | state as u64;
        }
    }

    /// An entry that is known to be there.
    fn at(&self, ordinal: u64) -> &Packed {
        &self.entries[(ordinal - self.base) as usize]
    }

    fn at_mut(&mut self, ordinal: u64) -> &mut Packed {
        &mut self.entries[(ordinal - self.base) as usize]
    }

    /// The ordinal after this one in its ring.
    fn next(&self, ordinal: u64) -> u64 {
        self.base + u64::from(self.at(ordinal).next.wrapping_sub(self.base as u32))
    }

    /// Discloses the next expected access. Accesses without room in the queue wait outside.
    pub fn push(&mut self, expected: &Expected) {
        self.rest.push_back(expected.clone());
        self.refill();
    }

    /// Takes in waiting accesses, as far as there is room.
    fn refill(&mut self) {
        while self.entries.len() < self.capacity
            && let Some(mut expected) = self.rest.pop_front()
        {
            let pages = &mut expected.pages;
            pages.end = pages.end.min(LAST_PAGE);
            pages.start = pages.start.min(pages.end);
            let end = pages.end.min(pages.start + ENTRY_PAGES);
            self.enter(&expected, &(expected.pages.start..end));
            if end < expected.pages.end {
                expected.pages.start = end;
                self.rest.push_front(expected);
            }
        }
    }

    fn enter(&mut self, expected: &Expected, pages: &Range<u64>) {
        let &Expected {
            file,
            thread,
            pattern,
            ..
        } = expected;
        let ordinal = self.end();
        if self.odds.back().map_or(Odds::SURE, |&(_, odds)| odds) != expected.odds {
            self.odds.push_back((ordinal, expected.odds));
        }
        let switched = self
            .last_thread
            .replace(thread)
            .is_some_and(|last| last != thread);
        if switched || pattern == Pattern::Loose {
            self.switched_at = Some(ordinal);
        }
        let mut entry = Packed::new(expected, pages, ordinal);
        if pages.is_empty() {
            self.entries.push_back(entry);
            return;
        }
        self.longest = self.longest.max(pages.end - pages.start);
        let hash = entry.hash();
        match self.ring(hash, file, pages.start) {
            None => {
                let (entries, base) = (&self.entries, self.base);
                self.index.insert(hash, ordinal, base, |one| {
                    entries[(one - base) as usize].hash()
                });
            }
            Some((slot, last)) => {
                entry.next = self.at(last).next;
                self.at_mut(last).next = ordinal as u32;
                self.index.replace(slot, ordinal);
            }
        }
        self.entries.push_back(entry);
    }

    /// The slot of the ring of this file and page, and the last entry in it.
    fn ring(&self, hash: u64, file: FileId, page: u64) -> Option<(usize, u64)> {
        self.index.find(hash, self.base, |ordinal| {
            self.at(ordinal).starts(file, page)
        })
    }

    /// Take the first entry out of the ring that is in this slot, with this last entry; its ordinal.
    fn unlink(&mut self, slot: usize, last: u64) -> u64 {
        let first = self.next(last);
        if first == last {
            let (entries, base) = (&self.entries, self.base);
            self.index
                .remove(slot, base, |one| entries[(one - base) as usize].hash());
        } else {
            self.at_mut(last).next = self.at(first).next;
        }
        first
    }

    /// Removes the entry that a read of this page matches from its ring: the first that has not expired, or else the last. Skipped entries
    /// are dropped for good: if they stayed in the ring, later reads would match them one by one and hold the position back. A page that is
    /// being read again, in small pieces, does not match an entry far ahead.
    fn take(
        &mut self,
        file: FileId,
        page: u64,
        passed: &mut SmallVec<[(u64, u64); 1]>,
    ) -> Option<u64> {
        let hash = hash(file, page);
        let floor = self.floor();
        loop {
            let (slot, last) = self.ring(hash, file, page)?;
            if self.next(last) > self.position + AGAIN && self.was_last_read(file, page) {
                return None;
            }
            let ordinal = self.unlink(slot, last);
            if ordinal >= floor || ordinal == last {
                return Some(ordinal);
            }
            let entry = self.at(ordinal);
            if entry.state() == EntryState::Admitted {
                passed.push((ordinal, entry.pages().into()));
            }
            self.set_state(ordinal, EntryState::Consumed);
        }
    }

    /// The program read `pages` of `file`: consumes the matching entries and moves the position.
    pub fn observe(&mut self, file: FileId, pages: Range<u64>) -> Matched {
        let mut matched = Matched::default();
        let mut page = pages.start;
        self.loose_only = self.loose_only.saturating_add(1);
        if self.entries.is_empty() && self.recent.is_empty() {
            return matched;
        }
        while page < pages.end {
            if let Some(ordinal) = self.take(file, page, &mut matched.passed) {
                let entry = self.at(ordinal).entry();
                self.set_state(ordinal, EntryState::Consumed);
                let range = entry.range();
                page = range.end;
                matched.known = true;
                matched.consumed.push((
                    ordinal,
                    Taken {
                        pages: range.clone(),
                        admitted: entry.state == EntryState::Admitted,
                        pattern: entry.pattern,
                    },
                ));
                self.remember(file, range);
                self.advance(ordinal, entry.pattern == Pattern::Loose);
            } else if self.was_last_read(file, page) {
                matched.known = true;
                page = self.recent[&file].end;
            } else {
                page += 1;
            }
        }
        matched
    }

    /// Move the position on by a match.
    fn advance(&mut self, ordinal: u64, loose: bool) {
        let reached = if loose {
            self.loose.add(ordinal);
            let reached = self.loose.trusted() + 1;
            if self.loose_only > LOOSE_ONLY {
                reached
            } else {
                self.strict_before(reached)
            }
        } else {
            self.loose_only = 0;
            self.matches.add(ordinal);
            self.matches.trusted() + 1
        };
        self.position = self.position.max(reached);
    }

    /// The first strict, unread entry at or after the position; `end` if there is none before it.
    fn strict_before(&mut self, end: u64) -> u64 {
        self.strict = self.strict.max(self.position);
        while self.strict < end
            && let Some(entry) = self.get(self.strict)
            && (entry.pattern == Pattern::Loose
                || entry.pages == 0
                || entry.state == EntryState::Consumed)
        {
            self.strict += 1;
        }
        self.strict.min(end)
    }

    /// True if the page is in the last matched range of this file.
    fn was_last_read(&self, file: FileId, page: u64) -> bool {
        self.recent
            .get(&file)
            .is_some_and(|seen| seen.contains(&page))
    }

    fn remember(&mut self, file: FileId, range: Range<u64>) {
        if self.recent.len() >= RECENT_FILES {
            self.recent.clear();
        }
        self.recent.insert(file, range);
    }

    /// Drop the oldest entry if the program is well past it, and return it.
    pub fn expire(&mut self) -> Option<(u64, Entry)> {
        if self.base + REORDER >= self.position {
            return None;
        }
        self.pop()
    }

    /// Drop the oldest entry, wherever the program is.
    pub fn pop(&mut self) -> Option<(u64, Entry)> {
        let entry = self.entries.front()?.entry();
        let ordinal = self.base;
        if entry.pages > 0
            && entry.state != EntryState::Consumed
            && let Some((slot, last)) =
                self.ring(hash(entry.file, entry.first), entry.file, entry.first)
        {
            self.unlink(slot, last);
        }
        self.entries.pop_front();
        self.base += 1;
        self.position = self.position.max(self.base);
        // The last range also covers future entries.
        while self.odds.get(1).is_some_and(|&(from, _)| from <= self.base) {
            self.odds.pop_front();
        }
        if self.entries.is_empty() {
            self.longest = 0;
        }
        self.refill();
        Some((ordinal, entry))
    }

    /// Forgets waiting accesses and the position; the next matches determine it anew.
    pub fn restart(&mut self) {
        self.rest.clear();
        self.matches = Matches::default();
        self.loose = Matches::default();
        self.loose_only = 0;
        self.recent.clear();
        self.switched_at = None;
    }
}

mod listed;
#[cfg(test)]
mod tests;
