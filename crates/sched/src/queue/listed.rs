//! The queue's entries of a page: those that begin there, those that have it, and those admitted for it.

use std::ops::Range;

use foreread_plan::FileId;

use super::{EntryState, Queue, hash};

/// Entries with one file and first page that are searched for the longest of them, a bound on time.
const LOOKED_AT: usize = 16;

impl Queue {
    /// The next entry that begins with this page, if the program has still to read it.
    pub(crate) fn listed_at(&self, file: FileId, page: u64) -> Option<u64> {
        let (_, last) = self.ring(hash(file, page), file, page)?;
        Some(self.next(last))
    }

    /// Append the pages of a range that are in no entry that the program has still to read.
    pub fn unlisted(&self, file: FileId, pages: Range<u64>, out: &mut Vec<u64>) {
        let mut listed = 0;
        for page in pages.start.saturating_sub(self.longest)..pages.end {
            if let Some((_, last)) = self.ring(hash(file, page), file, page) {
                listed = listed.max(page + self.length(last));
            }
            if page >= pages.start && page >= listed {
                out.push(page);
            }
        }
    }

    /// True if each of these pages is in an entry that was admitted and is unread.
    pub(crate) fn has_admitted(&self, file: FileId, pages: &Range<u64>) -> bool {
        if self.entries.is_empty() {
            return false;
        }
        let mut covered = 0;
        let from = (pages.start + 1).saturating_sub(self.longest);
        for page in from.min(pages.start)..pages.end {
            if let Some((_, last)) = self.ring(hash(file, page), file, page) {
                covered = covered.max(page + self.admitted(last));
            }
            if page >= pages.start && page >= covered {
                return false;
            }
        }
        true
    }

    /// The most pages of an admitted entry in this ring, among the first few.
    fn admitted(&self, last: u64) -> u64 {
        let mut longest = 0;
        let mut ordinal = last;
        for _ in 0..LOOKED_AT {
            ordinal = self.next(ordinal);
            let entry = self.at(ordinal);
            if entry.state() == EntryState::Admitted {
                longest = longest.max(u64::from(entry.pages()));
            }
            if ordinal == last {
                break;
            }
        }
        longest
    }

    /// The most pages of an entry in this ring, or more where the ring is long.
    fn length(&self, last: u64) -> u64 {
        let mut longest = 0;
        let mut ordinal = last;
        for _ in 0..LOOKED_AT {
            longest = longest.max(u64::from(self.at(ordinal).pages()));
            ordinal = self.next(ordinal);
            if ordinal == last {
                return longest;
            }
        }
        self.longest
    }
}
