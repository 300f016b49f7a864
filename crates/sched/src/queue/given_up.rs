//! Entries that will not be read after all, and entries that are certain.

use std::ops::Range;

use foreread_plan::FileId;

use super::{Entry, EntryState, Queue, hash};

impl Queue {
    /// These pages will not be read: their entries are dropped, and the position stays. Returns the entries' ordinals, their pages, and
    /// whether they were admitted.
    pub fn give_up(&mut self, file: FileId, pages: Range<u64>) -> Vec<(u64, u64, bool)> {
        let mut given_up = Vec::new();
        let mut page = pages.start;
        while page < pages.end {
            let mut next = page + 1;
            let hash = hash(file, page);
            while let Some((slot, last)) = self.ring(hash, file, page) {
                let ordinal = self.unlink(slot, last);
                let entry = self.at(ordinal).entry();
                self.set_state(ordinal, EntryState::Consumed);
                let is_admitted = entry.state == EntryState::Admitted;
                given_up.push((ordinal, u64::from(entry.pages), is_admitted));
                next = next.max(entry.range().end);
            }
            page = next;
        }
        given_up
    }

    /// The entries that begin within these pages and are still to be read: the ordinal of the next for each first page, and its entry.
    pub(crate) fn listed_in(&self, file: FileId, pages: Range<u64>) -> Vec<(u64, Entry)> {
        let mut listed = Vec::new();
        let mut page = pages.start;
        while page < pages.end {
            let mut next = page + 1;
            if let Some(ordinal) = self.listed_at(file, page) {
                let entry = self.at(ordinal).entry();
                next = next.max(entry.range().end);
                listed.push((ordinal, entry));
            }
            page = next;
        }
        listed
    }
}
