//! The requests made for the program, and the time for which their infill counts in the budget.
//!
//! Invariant: `serving` names the requests that hold infill, by each of their entries that is still to be read.

use std::collections::BTreeMap;
use std::ops::Range;

use foreread_plan::{Request, RequestId};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

/// The last ordinal that a request serves, and its number.
type Key = (u64, RequestId);

/// A request with entries that the program has not passed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    /// The request.
    pub request: Request,
    /// Pages of the request that no entry wants.
    pub infill: SmallVec<[Range<u64>; 1]>,
    /// True if the infill counts in the budget.
    held: bool,
    /// Entries of the request that are still unread, if it has infill.
    unread: usize,
}

impl Asked {
    /// The pages that some entry asked for.
    pub fn wanted(&self) -> impl Iterator<Item = Range<u64>> {
        let pages = &self.request.pages;
        let starts = std::iter::once(pages.start).chain(self.infill.iter().map(|gap| gap.end));
        let ends = self.infill.iter().map(|gap| gap.start);
        starts
            .zip(ends.chain(std::iter::once(pages.end)))
            .map(|(start, end)| start..end)
    }

    /// Pages to release from the budget, once.
    pub(crate) fn let_go(&mut self) -> u64 {
        if std::mem::take(&mut self.held) {
            self.infill.iter().map(|gap| gap.end - gap.start).sum()
        } else {
            0
        }
    }
}

/// The requests of one strand that the program has not passed.
#[derive(Debug, Default)]
pub(crate) struct AllAsked {
    requests: BTreeMap<Key, Asked>,
    serving: FxHashMap<u64, Key>,
}

impl AllAsked {
    /// A request is made that serves these entries; the last of them. Its infill is held until all of them are read.
    pub(crate) fn add(
        &mut self,
        request: Request,
        infill: SmallVec<[Range<u64>; 1]>,
        ordinals: &[u64],
    ) -> u64 {
        let last = ordinals.iter().copied().max().unwrap_or(0);
        let key = (last, request.id);
        let held = !infill.is_empty();
        let unread = if held { ordinals.len() } else { 0 };
        if held {
            self.serving
                .extend(ordinals.iter().map(|&ordinal| (ordinal, key)));
        }
        let asked = Asked {
            request,
            infill,
            held,
            unread,
        };
        self.requests.insert(key, asked);
        last
    }

    pub(crate) fn get(&self, last: u64, id: RequestId) -> Option<&Asked> {
        self.requests.get(&(last, id))
    }

    pub(crate) fn get_mut(&mut self, last: u64, id: RequestId) -> Option<&mut Asked> {
        self.requests.get_mut(&(last, id))
    }

    /// The requests that may serve this entry.
    pub(crate) fn from(&self, ordinal: u64) -> impl Iterator<Item = &Asked> {
        let requests = self.requests.range((ordinal, RequestId(0))..);
        requests.map(|(_, asked)| asked)
    }

    /// An entry is read or given up, or is asked for once more. Returns the pages to release from the budget.
    pub(crate) fn served(&mut self, ordinal: u64) -> u64 {
        let key = self.serving.remove(&ordinal);
        let asked = key.and_then(|key| self.requests.get_mut(&key));
        asked.map_or(0, |asked| {
            asked.unread -= 1;
            if asked.unread == 0 { asked.let_go() } else { 0 }
        })
    }

    /// The next request whose entries are all before `horizon`.
    pub(crate) fn passed(&mut self, horizon: u64) -> Option<Asked> {
        let first = self.requests.first_entry()?;
        (first.key().0 < horizon).then(|| first.remove())
    }
}
