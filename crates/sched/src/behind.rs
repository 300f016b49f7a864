//! Evict behind: pages that the session fetched and the program has passed are evicted when memory is short (libprefetch's implementation
//! sketch, step 2: evict old pages in the order of the list).
//!
//! Data flow: the engine reports fetched pages that the program has read, will not read any more, or never wanted (infill). They are
//! remembered, oldest first. When they and the unread pages together exceed the budget's target, the oldest are evicted, a sixteenth of the
//! target at a time so that neighbours go together.
//!
//! Invariant: a page is given back only if no entry ahead in any queue lists it. Listed ones are set aside
//! and remembered anew when the program has read them again.

use std::collections::VecDeque;
use std::ops::Range;

use foreread_plan::FileId;
use rustc_hash::FxHashMap;

/// Room is made for this fraction of the target at a time, so that neighbours go together.
const AT_A_TIME: u64 = 16;
/// Pages per bit map: the bits of a word.
const CHUNK: u64 = 64;

/// Pages that lie together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Passed {
    first: u64,
    file: FileId,
    pages: u32,
}

impl Passed {
    fn range(&self) -> Range<u64> {
        self.first..self.first + u64::from(self.pages)
    }
}

/// The pages the program is past, oldest first; 16 bytes a run of them, and a bit map.
#[derive(Debug, Default)]
pub(crate) struct Behind {
    runs: VecDeque<Passed>,
    pages: u64,
    /// The pages of the runs.
    known: Bits,
    /// Pages that were due to be given back while they were listed ahead.
    aside: Bits,
}

/// A set of pages, as bits of chunks.
#[derive(Debug, Default)]
struct Bits(FxHashMap<(FileId, u64), u64>);

impl Bits {
    /// Adds a page. True if it is new.
    fn add(&mut self, file: FileId, page: u64) -> bool {
        let chunk = self.0.entry((file, page / CHUNK)).or_default();
        let before = *chunk;
        *chunk |= 1 << (page % CHUNK);
        *chunk != before
    }

    /// Removes a page. True if it was there.
    fn remove(&mut self, file: FileId, page: u64) -> bool {
        let Some(chunk) = self.0.get_mut(&(file, page / CHUNK)) else {
            return false;
        };
        let before = *chunk;
        *chunk &= !(1 << (page % CHUNK));
        let after = *chunk;
        if after == 0 {
            self.0.remove(&(file, page / CHUNK));
        }
        after != before
    }
}

impl Behind {
    /// The program is past these pages, which the session brought in.
    pub(crate) fn pass(&mut self, file: FileId, pages: Range<u64>) {
        for page in pages {
            if self.known.add(file, page) {
                self.aside.remove(file, page);
                self.remember(file, page);
            }
        }
    }

    fn remember(&mut self, file: FileId, page: u64) {
        self.pages += 1;
        if let Some(last) = self.runs.back_mut()
            && last.file == file
            && let Some(sum) = last.pages.checked_add(1)
        {
            if last.range().end == page {
                last.pages = sum;
                return;
            }
            if last.first == page + 1 {
                (last.first, last.pages) = (page, sum);
                return;
            }
        }
        self.runs.push_back(Passed {
            first: page,
            file,
            pages: 1,
        });
    }

    /// The program reads these pages, perhaps again.
    pub(crate) fn read(&mut self, file: FileId, pages: Range<u64>) {
        if self.aside.0.is_empty() {
            return;
        }
        for page in pages {
            if self.aside.remove(file, page) {
                self.pass(file, page..page + 1);
            }
        }
    }

    /// The ranges to evict, with `unread` further pages in memory and a limit of `target` in all. `unlisted` appends the parts of a range
    /// that no entry ahead has.
    pub(crate) fn give_back(
        &mut self,
        unread: u64,
        target: u64,
        mut unlisted: impl FnMut(FileId, Range<u64>, &mut Vec<u64>),
    ) -> Vec<(FileId, Range<u64>)> {
        if self.pages == 0 || unread + self.pages <= target {
            return Vec::new();
        }
        let keep = (target - target / AT_A_TIME).saturating_sub(unread);
        let mut pages: Vec<(FileId, u64)> = Vec::new();
        let mut free = Vec::new();
        while self.pages > keep
            && let Some(run) = self.runs.pop_front()
        {
            self.pages -= u64::from(run.pages);
            free.clear();
            unlisted(run.file, run.range(), &mut free);
            let mut given = free.iter().copied().peekable();
            for page in run.range() {
                self.known.remove(run.file, page);
                if given.next_if_eq(&page).is_some() {
                    pages.push((run.file, page));
                } else {
                    self.aside.add(run.file, page);
                }
            }
        }
        pages.sort_unstable();
        joined(&pages)
    }
}

/// Sorted pages as runs.
fn joined(pages: &[(FileId, u64)]) -> Vec<(FileId, Range<u64>)> {
    let mut runs: Vec<(FileId, Range<u64>)> = Vec::new();
    for &(file, page) in pages {
        match runs.last_mut() {
            Some((last, run)) if *last == file && run.end == page => run.end += 1,
            _ => runs.push((file, page..page + 1)),
        }
    }
    runs
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Queue;
    use foreread_plan::{Expected, Odds, Pattern, ThreadId};
    use proptest::prelude::*;

    const FILE: FileId = FileId(4);

    fn listing(entries: &[Range<u64>]) -> Queue {
        let mut queue = Queue::new(1024);
        for pages in entries {
            queue.push(&Expected {
                odds: Odds::SURE,
                file: FILE,
                pages: pages.clone(),
                thread: ThreadId(0),
                pattern: Pattern::Scattered,
            });
        }
        queue
    }

    fn given(behind: &mut Behind, unread: u64, target: u64, queue: &Queue) -> Vec<u64> {
        let runs = behind.give_back(unread, target, |file, pages, out| {
            queue.unlisted(file, pages, out);
        });
        runs.into_iter().flat_map(|(_, run)| run).collect()
    }

    #[test]
    fn with_room_for_all_nothing_is_given_back() {
        let mut behind = Behind::default();
        behind.pass(FILE, 0..500);
        assert!(given(&mut behind, 500, 1000, &listing(&[])).is_empty());
    }

    #[test]
    fn the_oldest_pages_go_first_and_no_more_than_needed() {
        let mut behind = Behind::default();
        for page in [90, 20, 50, 30, 70] {
            behind.pass(FILE, page * 100..page * 100 + 40);
        }
        let first = given(&mut behind, 0, 160, &listing(&[]));
        assert_eq!(first, (2000..2040).chain(9000..9040).collect::<Vec<_>>());
        assert_eq!(behind.pages, 120);
    }

    #[test]
    fn pages_read_one_after_another_either_way_are_one_run() {
        let mut behind = Behind::default();
        for page in 0..100 {
            behind.pass(FILE, 1000 + page..1001 + page);
        }
        for page in (0..100).rev() {
            behind.pass(FILE, page..page + 1);
        }
        assert_eq!((behind.runs.len(), behind.pages), (2, 200));
        assert_eq!(size_of::<Passed>(), 16);
    }

    #[test]
    fn a_page_passed_twice_counts_once() {
        let mut behind = Behind::default();
        behind.pass(FILE, 0..100);
        behind.pass(FILE, 60..70);
        assert_eq!(behind.pages, 100);
        assert_eq!(given(&mut behind, 0, 0, &listing(&[])).len(), 100);
        behind.pass(FILE, 60..70);
        assert_eq!(behind.pages, 10, "what was given back may come again");
    }

    #[test]
    fn a_page_listed_again_stays_until_it_was_read_again() {
        let mut behind = Behind::default();
        let mut queue = listing(std::slice::from_ref(&(5..8)));
        behind.pass(FILE, 0..10);
        assert_eq!(given(&mut behind, 0, 0, &queue), [0, 1, 2, 3, 4, 8, 9]);
        queue.observe(FILE, 5..8);
        assert!(given(&mut behind, 0, 0, &queue).is_empty());
        behind.read(FILE, 5..8);
        assert_eq!(given(&mut behind, 0, 0, &queue), [5, 6, 7]);
    }

    proptest! {
        /// For any passed and listed pages: evicted pages were passed and are not listed ahead, they are enough to come under the target if
        /// that many are free, and nothing is forgotten.
        #[test]
        fn only_passed_pages_that_nobody_lists_are_given_back(
            passed in proptest::collection::vec((0u64..400, 1u64..40), 0..60),
            listed in proptest::collection::vec((0u64..400, 1u64..600), 0..20),
            read in proptest::collection::vec((0u64..400, 1u64..40), 0..20),
            unread in 0u64..500,
            target in 0u64..1000,
        ) {
            let listed: Vec<_> = listed.into_iter().map(|(first, count)| first..first + count).collect();
            let mut queue = listing(&listed);
            for (first, count) in read {
                queue.observe(FILE, first..first + count);
            }
            let ahead = |page: u64| (0..queue.end()).any(|ordinal| {
                queue.get(ordinal).is_some_and(|entry| {
                    entry.state != crate::EntryState::Consumed && entry.range().contains(&page)
                })
            });
            let mut behind = Behind::default();
            let mut all = std::collections::BTreeSet::new();
            for (first, count) in passed {
                behind.pass(FILE, first..first + count);
                all.extend(first..first + count);
            }
            let before = behind.pages;
            let out = given(&mut behind, unread, target, &queue);
            prop_assert!(before + unread > target || out.is_empty());
            prop_assert!(out.iter().all(|page| all.contains(page) && !ahead(*page)));
            prop_assert!(behind.pages + unread <= target.max(unread));
            let rest = given(&mut behind, 0, 0, &queue);
            for page in all {
                prop_assert!(ahead(page) || out.contains(&page) || rest.contains(&page), "{} is forgotten", page);
            }
        }
    }
}
