//! The program's own list of its next reads, in order (libprefetch's access list).
//!
//! A read in a region is looked for in the list by its bytes. The nearest entry is meant: one up to
//! 4096 ahead, else one of the last 4096 that were passed (a re-read), else one further
//! ahead. Reaching an entry skips those before it; a jump of more than 4096 is believed only when a second read
//! confirms it, because a page may be read for other reasons long before its turn.
//!
//! Data flow: [`AccessList::append`] and [`AccessList::replace`] put entries at the end; [`Feed`], a
//! [`crate::Source`], discloses them from the program's place on; [`AccessList::read`] moves that
//! place, and says when to ask the program for more.
//!
//! Invariant: an entry that was passed is not disclosed, unless it is being read. After a list was replaced, its disclosures are declared
//! void before anything else is disclosed.

mod feed;
mod regions;
mod store;
#[cfg(test)]
mod tests;

use std::ops::Range;

use foreread_plan::{Advice, Extent, FileId, PAGE, ThreadId};
use rustc_hash::FxHashMap;

use crate::streams::{Runs, STREAM_AFTER, Streams, is_front_to_back};
use feed::BULK;
pub use feed::Feed;
pub use regions::RegionId;
use regions::Regions;
use store::{BEHIND, MOST, Store};

/// The thread all entries count for: a list is one order.
const THREAD: ThreadId = ThreadId(0);
/// Entries of one file after which earlier entries count half.
const REMEMBERED: u32 = 4096;

/// An access announced by the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The file. Numbers end at 2^29.
    pub file: FileId,
    /// The bytes; a length of 0 stands for the page that holds the offset when fetching, and for
    /// one byte when matching.
    pub extent: Extent,
    /// True if the callback is given this access as the most recent marked one.
    pub marked: bool,
}

/// Result of matching a read with the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Match {
    /// In no region: of no concern.
    Outside,
    /// On the list, ahead or just passed.
    Listed,
    /// It matched the last entry of a complete list: time to ask for more.
    RanOut,
    /// In a region, and not on the list.
    Unlisted,
}

/// Counts of a list since its creation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Entries accepted.
    pub accepted: u64,
    /// Reads in a region that were on the list, re-reads included.
    pub listed: u64,
    /// Reads in a region that were not.
    pub unlisted: u64,
    /// Entries the program passed over and did not read afterwards either.
    pub skipped: u64,
    /// Reads in no region.
    pub outside: u64,
}

/// Regions, entries, and where in them the program is.
#[derive(Debug)]
pub struct AccessList {
    capacity: usize,
    regions: Regions,
    store: Store,
    /// The number of the entry with ordinal 0.
    first: u64,
    /// Entries below this ordinal were passed before they were there.
    goal: u64,
    /// The next ordinal to disclose.
    disclosed: u64,
    /// The entry passed last, if it was not read to its end: its rest is still to be fetched.
    at_hand: Option<u64>,
    void: bool,
    done: bool,
    /// The last read far ahead, which the next may confirm.
    far: Option<u64>,
    marked: Option<(FileId, u64)>,
    order: ListOrder,
    counts: Counts,
}

/// Detects files that are listed in sequence.
#[derive(Debug, Default)]
struct ListOrder {
    streams: Streams,
    files: FxHashMap<FileId, Listed>,
}

/// Statistics of the order of one file's entries.
#[derive(Clone, Copy, Debug, Default)]
struct Listed {
    entries: u32,
    /// Entries that continue the previous one, or are a stream by themselves.
    in_row: u32,
    /// Entries that continue the previous one without a gap.
    whole: u32,
    /// In all of them.
    bytes: u64,
}

impl Listed {
    fn add(&mut self, other: Self) {
        self.entries += other.entries;
        self.in_row += other.in_row;
        self.whole += other.whole;
        self.bytes = self.bytes.saturating_add(other.bytes);
    }

    /// Halves the earlier counts when they are large.
    fn fade(&mut self) {
        if self.entries >= REMEMBERED {
            self.entries /= 2;
            self.in_row /= 2;
            self.whole /= 2;
            self.bytes /= 2;
        }
    }

    fn advice(self) -> Advice {
        // The first entry continues nothing.
        let elsewhere = (self.entries - self.whole).saturating_sub(1);
        if self.in_row < self.entries.div_ceil(2) {
            Advice::Random
        } else if is_front_to_back(self.bytes, self.entries.into(), elsewhere.into()) {
            Advice::Sequential
        } else {
            Advice::Normal
        }
    }
}

impl ListOrder {
    /// Adds an entry. True if it is part of a stream that is left to the kernel.
    fn add(&mut self, entry: &Entry) -> bool {
        let Runs { whole, onward } = self.streams.runs(THREAD, entry.file, entry.extent);
        let long = entry.extent.len >= STREAM_AFTER;
        let listed = self.files.entry(entry.file).or_default();
        listed.fade();
        listed.add(Listed {
            entries: 1,
            in_row: u32::from(onward || long),
            whole: u32::from(whole > 0),
            bytes: entry.extent.len,
        });
        // A long entry in pieces is fetched as well: among other requests, the kernel's small windows would each wait for those.
        whole >= if long { BULK * PAGE } else { STREAM_AFTER }
    }
}

/// A list that is to replace another: made without holding that one up.
#[derive(Debug)]
pub struct Draft {
    store: Store,
    order: ListOrder,
    accepted: usize,
}

impl Draft {
    /// The first `capacity` of these entries.
    pub fn new(entries: &[Entry], capacity: usize) -> Self {
        let accepted = entries.len().min(capacity.min(MOST));
        let mut draft = Self {
            store: Store::new(),
            order: ListOrder::default(),
            accepted,
        };
        for entry in &entries[..accepted] {
            let sequential = draft.order.add(entry);
            draft.store.push(entry, sequential, capacity);
        }
        draft
    }
}

impl AccessList {
    /// An empty list for up to `capacity` entries ahead of the program, 2^30 at most.
    pub fn new(capacity: usize) -> Self {
        Self {
            capacity: capacity.min(MOST),
            regions: Regions::default(),
            store: Store::new(),
            first: 0,
            goal: 0,
            disclosed: 0,
            at_hand: None,
            void: false,
            done: false,
            far: None,
            marked: None,
            order: ListOrder::default(),
            counts: Counts::default(),
        }
    }

    /// Reads of these bytes concern the list. Regions may overlap.
    pub fn region(&mut self, file: FileId, bytes: Range<u64>) -> RegionId {
        self.regions.add(file, bytes)
    }

    /// Removes a region. True if it existed.
    pub fn remove_region(&mut self, region: RegionId) -> bool {
        self.regions.remove(region)
    }

    /// Forget all regions of a file.
    pub fn remove_file(&mut self, file: FileId) {
        self.regions.remove_file(file);
        self.order.files.remove(&file);
    }

    /// Replace the list; how many of the entries were accepted, the first ones. Numbers start at 0.
    pub fn set(&mut self, entries: &[Entry]) -> usize {
        self.replace(&mut Draft::new(entries, self.capacity))
    }

    /// [`AccessList::set`] with entries made ready beforehand. The draft has the former ones then:
    /// letting go of many takes a while as well.
    pub fn replace(&mut self, draft: &mut Draft) -> usize {
        std::mem::swap(&mut self.store, &mut draft.store);
        self.first = 0;
        self.goal = 0;
        self.disclosed = 0;
        self.at_hand = None;
        self.void = true;
        self.done = false;
        self.far = None;
        std::mem::swap(&mut self.order.streams, &mut draft.order.streams);
        for (file, listed) in draft.order.files.drain() {
            let known = self.order.files.entry(file).or_default();
            // One list may have more entries than all lists before; none is forgotten at once.
            known.fade();
            known.add(listed);
        }
        self.counts.accepted += draft.accepted as u64;
        draft.accepted
    }

    /// Appends entries. Returns the number of accepted entries, the first ones.
    pub fn append(&mut self, entries: &[Entry]) -> usize {
        let count = entries.len().min(self.room());
        for entry in &entries[..count] {
            let sequential = self.order.add(entry);
            self.store.push(entry, sequential, self.capacity);
            self.counts.accepted += 1;
        }
        if count > 0 {
            self.done = false;
        }
        while self.store.position() < self.goal.min(self.store.end()) {
            self.pass();
        }
        count
    }

    /// Empties the list and forgets passed entries. Numbering continues.
    pub fn clear(&mut self) {
        let first = self.end();
        self.replace(&mut Draft::new(&[], 0));
        self.first = first;
    }

    /// The list is complete until something is added: running out is [`Match::RanOut`].
    pub fn done(&mut self) {
        self.done = true;
    }

    /// Entries that fit.
    pub fn room(&self) -> usize {
        self.capacity.saturating_sub(self.ahead() as usize)
    }

    /// Entries it holds ahead of the program, at most.
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// Entries ahead of the program.
    pub fn ahead(&self) -> u64 {
        self.store.ahead()
    }

    /// One past the last entry's number.
    pub fn end(&self) -> u64 {
        self.first + self.store.end()
    }

    /// Number and contents of the entry expected next.
    pub fn next(&self) -> Option<(u64, Entry)> {
        let at = self.store.position();
        (at < self.store.end()).then(|| (self.first + at, self.store.get(at).0))
    }

    /// The entry with this number, while it is stored.
    pub fn get(&self, n: u64) -> Option<Entry> {
        let ordinal = n.checked_sub(self.first)?;
        let held = self.store.base()..self.store.end();
        held.contains(&ordinal).then(|| self.store.get(ordinal).0)
    }

    /// True if a read of these bytes concerns the list.
    pub fn concerns(&self, file: FileId, extent: Extent) -> bool {
        self.regions.touch(file, extent)
    }

    /// The most recent marked access: its file and offset.
    pub fn marked(&self) -> Option<(FileId, u64)> {
        self.marked
    }

    /// The counts so far.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// Advice for the kernel about the order of a file's reads, while entries are listed. Random: less than half of its entries continue
    /// the previous one or are streams by themselves. Sequential: 2 MiB at least, and nearly all entries continue the previous one without
    /// a gap.
    pub fn advice(&self, file: FileId) -> Advice {
        let listed = self.order.files.get(&file).filter(|_| self.ahead() > 0);
        listed.map_or(Advice::Normal, |listed| listed.advice())
    }

    /// Bytes of memory the entries and their index take.
    pub fn memory(&self) -> usize {
        self.store.memory()
    }

    /// The program is about to read these bytes.
    pub fn read(&mut self, file: FileId, extent: Extent) -> Match {
        if !self.regions.touch(file, extent) {
            self.counts.outside += 1;
            return Match::Outside;
        }
        let ahead = self.store.find_ahead(file, extent);
        let distance = ahead.map(|ordinal| ordinal - self.store.position());
        if let Some(ordinal) = ahead
            && distance <= Some(BEHIND)
        {
            return self.reach(ordinal, extent);
        }
        if let Some(ordinal) = self.store.find_passed(file, extent) {
            self.again(ordinal);
            return Match::Listed;
        }
        let Some(ordinal) = ahead else {
            self.counts.unlisted += 1;
            return Match::Unlisted;
        };
        let confirmed = self
            .far
            .replace(ordinal)
            .is_some_and(|far| far < ordinal && ordinal - far <= BEHIND);
        if confirmed {
            return self.reach(ordinal, extent);
        }
        self.counts.listed += 1;
        self.store.mark_read(ordinal);
        self.note(&self.store.get(ordinal).0);
        Match::Listed
    }

    /// A read that was [`Match::Unlisted`] may be on the list by now: move the place to it, without
    /// counting it again.
    pub fn settle(&mut self, file: FileId, extent: Extent) {
        if let Some(ordinal) = self.store.find_ahead(file, extent)
            && ordinal - self.store.position() <= BEHIND
        {
            self.reach(ordinal, extent);
            self.counts.listed -= 1;
        }
    }

    /// The program is at entry `n`: equivalent to reading it. An entry that is not listed yet will be passed when it is. `None` if the list
    /// is complete and has no such entry.
    pub fn at(&mut self, n: u64) -> Option<Match> {
        let (base, end) = (self.first, self.store.end());
        let Some(ordinal) = n.checked_sub(base) else {
            // Counts an entry of a list that was emptied.
            self.counts.listed += 1;
            return Some(Match::Listed);
        };
        if ordinal >= end {
            if self.done {
                return None;
            }
            self.goal = ordinal.saturating_add(1);
            while self.store.position() < end {
                self.pass();
            }
            self.counts.listed += 1;
            return Some(Match::Listed);
        }
        if ordinal >= self.store.position() {
            let extent = self.store.get(ordinal).0.extent;
            return Some(self.reach(ordinal, extent));
        }
        if ordinal >= self.store.base() {
            self.again(ordinal);
        } else {
            self.counts.listed += 1;
        }
        Some(Match::Listed)
    }

    /// A read of an entry that was passed.
    fn again(&mut self, ordinal: u64) {
        self.counts.listed += 1;
        if self.store.mark_read(ordinal) {
            self.counts.skipped -= 1;
        }
        self.note(&self.store.get(ordinal).0);
    }

    /// A read of an entry ahead: entries before it are skipped, and entries that it covers are read with it.
    fn reach(&mut self, ordinal: u64, read: Extent) -> Match {
        self.far = None;
        self.counts.listed += 1;
        while self.store.position() < ordinal {
            self.pass();
        }
        let mut last = self.take();
        while let Some((_, next)) = self.next()
            && next.file == last.file
            && next.extent.offset >= last.extent.end()
            && next.extent.end() <= read.end()
        {
            last = self.take();
        }
        let is_left = read.end() < last.extent.end();
        self.at_hand = is_left.then(|| self.store.position() - 1);
        if self.done && self.ahead() == 0 {
            Match::RanOut
        } else {
            Match::Listed
        }
    }

    /// Pass the next entry as one that was read.
    fn take(&mut self) -> Entry {
        let passed = self.store.pass();
        self.store.mark_read(passed.ordinal);
        self.note(&passed.entry);
        passed.entry
    }

    /// Pass the next entry over.
    fn pass(&mut self) {
        self.at_hand = None;
        let passed = self.store.pass();
        self.counts.skipped += u64::from(!passed.read);
    }

    fn note(&mut self, entry: &Entry) {
        if entry.marked {
            self.marked = Some((entry.file, entry.extent.offset));
        }
    }

    /// Appends up to `most` undisclosed entries, each with a flag for a sequential stream. Nothing is appended before a replaced list was
    /// declared void.
    fn disclose(&mut self, most: usize, out: &mut Vec<(Entry, bool)>) {
        if self.void {
            return;
        }
        let at_hand = self.at_hand.unwrap_or(u64::MAX);
        let from = self.disclosed.max(self.store.position().min(at_hand));
        let to = self.store.end().min(from + most as u64);
        out.extend((from..to).map(|ordinal| self.store.get(ordinal)));
        self.disclosed = to;
    }

    /// True, once, if the disclosures are void; disclosure then starts again at the program's position.
    fn take_void(&mut self) -> bool {
        if self.void {
            self.disclosed = 0;
        }
        std::mem::take(&mut self.void)
    }
}
