//! A program's list as a source of foreknowledge.
//!
//! Data flow: [`AccessList`], shared with the program's threads → pieces of at most 1 MiB → the plan queue.
//! The list is locked for some microseconds at a time: a reading thread may wait for it.

use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use foreread_plan::{Expected, Extent, FileId, Odds, PAGE, Pattern};

use super::{AccessList, Entry, THREAD};
use crate::{Nature, Outlook, Source};

/// Number of entries taken while the list is locked.
const TAKEN: usize = 256;
/// Pages of one disclosure (1 MiB). A longer entry is split, because its first bytes would otherwise wait until all of it has room in the
/// budget.
const PIECE: u64 = 256;
/// Pages of an entry (16 MiB) from which on it is a sequential stream by itself.
pub(super) const BULK: u64 = 4096;

/// A shared list as a source.
#[derive(Debug)]
pub struct Feed {
    list: Arc<Mutex<AccessList>>,
    /// Taken from the list, latest first.
    taken: Vec<(Entry, bool)>,
    /// The rest of the current entry.
    rest: Option<Remainder>,
    last: Option<(FileId, Range<u64>)>,
}

/// An entry that is being cut into pieces.
#[derive(Clone, Debug)]
struct Remainder {
    file: FileId,
    /// First page of the entry.
    first: u64,
    pages: Range<u64>,
    sequential: bool,
}

impl Feed {
    /// Disclose from this list.
    pub fn new(list: Arc<Mutex<AccessList>>) -> Self {
        Self {
            list,
            taken: Vec::new(),
            rest: None,
            last: None,
        }
    }

    /// Takes more from the list. True if there was any.
    fn refill(&mut self, room: usize) -> bool {
        let mut list = self.list.lock().unwrap_or_else(PoisonError::into_inner);
        list.disclose(room.min(TAKEN), &mut self.taken);
        self.taken.reverse();
        !self.taken.is_empty()
    }

    /// True if the list was replaced since the last call.
    fn is_void(&self) -> bool {
        let mut list = self.list.lock().unwrap_or_else(PoisonError::into_inner);
        list.take_void()
    }

    /// The next piece of the entry at hand.
    fn piece(&mut self) -> Option<Expected> {
        let rest = self.rest.as_mut()?;
        let bulk = rest.pages.start - rest.first >= BULK;
        let end = if bulk {
            rest.pages.end
        } else {
            rest.pages.end.min(rest.pages.start + PIECE)
        };
        let pages = rest.pages.start..end;
        rest.pages.start = end;
        let piece = Expected {
            odds: Odds::SURE,
            file: rest.file,
            pages,
            thread: THREAD,
            pattern: if rest.sequential || bulk {
                Pattern::Sequential
            } else {
                Pattern::Scattered
            },
        };
        if rest.pages.is_empty() {
            self.rest = None;
        }
        Some(piece)
    }

    /// Begins an entry, unless all its pages are those of the previous one.
    fn begin(&mut self, entry: &Entry, sequential: bool) {
        let file = entry.file;
        let Extent { offset, len } = entry.extent;
        let pages = Extent::new(offset, len.max(1)).pages();
        let repeat = self.last.as_ref().is_some_and(|(last, seen)| {
            *last == file && seen.start <= pages.start && pages.end <= seen.end
        });
        if repeat {
            return;
        }
        self.last = Some((file, pages.clone()));
        self.rest = Some(Remainder {
            file,
            first: pages.start,
            pages,
            sequential,
        });
    }

    fn forget(&mut self) {
        self.taken.clear();
        self.rest = None;
        self.last = None;
    }
}

impl Source for Feed {
    fn nature(&self) -> Nature {
        Nature::Told
    }

    fn disclose(&mut self, room: usize, out: &mut Vec<Expected>) -> Outlook {
        if self.is_void() {
            self.forget();
            return Outlook::Void;
        }
        let full = out.len().saturating_add(room);
        while out.len() < full {
            if let Some(piece) = self.piece() {
                out.push(piece);
            } else if let Some((entry, sequential)) = self.taken.pop() {
                self.begin(&entry, sequential);
            } else if !self.refill(full - out.len()) {
                return Outlook::Later;
            }
        }
        Outlook::More
    }
}

const _: () = assert!(BULK * PAGE == 16 << 20 && PIECE * PAGE == 1 << 20);
