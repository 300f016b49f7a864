//! The list a program hands over itself: what it will read next, in order.
//!
//! Data flow: [`AccessList::set`] and [`AccessList::append`] put entries at the end; the program's
//! reads ([`AccessList::read`]) move the place in the list on.

use std::collections::VecDeque;
use std::ops::Range;

use foreread_plan::{Extent, FileId};

/// Entries passed over or read that still count as listed.
const BEHIND: usize = 4096;

/// One access the program announces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The file.
    pub file: FileId,
    /// The bytes; a length of 0 stands for the page that holds the offset when fetching, and for
    /// one byte when matching.
    pub extent: Extent,
    /// Whether the callback is told of it as the most recent marked access.
    pub marked: bool,
}

/// A region's number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RegionId(pub u32);

/// What a read was to the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Match {
    /// In no region: of no concern.
    Outside,
    /// On the list, ahead or just passed.
    Listed,
    /// It matched the last entry of a list that is complete: time to ask for more.
    RanOut,
    /// In a region, and not on the list.
    Unlisted,
}

/// What has happened to a list, since it was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Entries accepted.
    pub accepted: u64,
    /// Reads in a region that were on the list, re-reads included.
    pub listed: u64,
    /// Reads in a region that were not.
    pub unlisted: u64,
    /// Entries the program passed over without reading them.
    pub skipped: u64,
    /// Reads in no region.
    pub outside: u64,
}

/// Regions, entries, and where in them the program is.
#[derive(Debug)]
pub struct AccessList {
    capacity: usize,
    regions: Vec<Option<(FileId, Range<u64>)>>,
    ahead: VecDeque<Entry>,
    behind: VecDeque<Entry>,
    /// The number of the next entry.
    next: u64,
    done: bool,
    marked: Option<(FileId, u64)>,
    counts: Counts,
}

impl AccessList {
    /// An empty list for up to `capacity` entries ahead of the program.
    pub fn new(capacity: usize) -> Self {
        Self {
            capacity,
            regions: Vec::new(),
            ahead: VecDeque::new(),
            behind: VecDeque::new(),
            next: 0,
            done: false,
            marked: None,
            counts: Counts::default(),
        }
    }

    /// Reads of these bytes concern the list.
    pub fn region(&mut self, file: FileId, bytes: Range<u64>) -> RegionId {
        self.regions.push(Some((file, bytes)));
        RegionId(self.regions.len() as u32 - 1)
    }

    /// Forget a region; whether it was there.
    pub fn remove_region(&mut self, region: RegionId) -> bool {
        self.regions
            .get_mut(region.0 as usize)
            .is_some_and(|region| region.take().is_some())
    }

    /// Replace the list; how many of the entries were accepted, the first ones. Numbers start at 0.
    pub fn set(&mut self, entries: &[Entry]) -> usize {
        self.clear();
        self.next = 0;
        self.append(entries)
    }

    /// Add at the end; how many of the entries were accepted, the first ones.
    pub fn append(&mut self, entries: &[Entry]) -> usize {
        let count = entries.len().min(self.room());
        self.ahead.extend(&entries[..count]);
        self.counts.accepted += count as u64;
        if count > 0 {
            self.done = false;
        }
        count
    }

    /// Empty the list, and forget what was passed. Numbers go on.
    pub fn clear(&mut self) {
        self.counts.skipped += self.ahead.len() as u64;
        self.next += self.ahead.len() as u64;
        self.ahead.clear();
        self.behind.clear();
        self.done = false;
    }

    /// The list is complete until something is added: running out is [`Match::RanOut`].
    pub fn done(&mut self) {
        self.done = true;
    }

    /// Entries that fit.
    pub fn room(&self) -> usize {
        self.capacity.saturating_sub(self.ahead.len())
    }

    /// Entries ahead of the program.
    pub fn ahead(&self) -> usize {
        self.ahead.len()
    }

    /// The most recent marked access: its file and offset.
    pub fn marked(&self) -> Option<(FileId, u64)> {
        self.marked
    }

    /// What has happened so far.
    pub fn counts(&self) -> Counts {
        self.counts
    }

    /// One past the last entry's number.
    pub fn end(&self) -> u64 {
        self.next + self.ahead.len() as u64
    }

    /// The program is about to read these bytes.
    pub fn read(&mut self, file: FileId, extent: Extent) -> Match {
        let inside = self.regions.iter().flatten().any(|(region, bytes)| {
            *region == file && bytes.start < extent.end() && extent.offset < bytes.end
        });
        if !inside {
            self.counts.outside += 1;
            return Match::Outside;
        }
        let hits = |entry: &Entry| {
            entry.file == file
                && entry.extent.offset < extent.end()
                && extent.offset < entry.extent.offset + entry.extent.len.max(1)
        };
        match self.ahead.iter().position(hits) {
            Some(at) => self.pass(at),
            None if self.behind.iter().any(hits) => {
                self.counts.listed += 1;
                Match::Listed
            }
            None => {
                self.counts.unlisted += 1;
                Match::Unlisted
            }
        }
    }

    /// The program is at entry `n`: the same as reading it.
    pub fn at(&mut self, n: u64) -> Match {
        match n.checked_sub(self.next) {
            Some(at) if (at as usize) < self.ahead.len() => self.pass(at as usize),
            _ => {
                self.counts.listed += 1;
                Match::Listed
            }
        }
    }

    fn pass(&mut self, at: usize) -> Match {
        self.counts.listed += 1;
        self.counts.skipped += at as u64;
        for entry in self.ahead.drain(..=at) {
            if entry.marked {
                self.marked = Some((entry.file, entry.extent.offset));
            }
            self.behind.push_back(entry);
        }
        self.next += at as u64 + 1;
        let extra = self.behind.len().saturating_sub(BEHIND);
        self.behind.drain(..extra);
        if self.done && self.ahead.is_empty() {
            Match::RanOut
        } else {
            Match::Listed
        }
    }
}
