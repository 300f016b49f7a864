//! Which pending entry is fetched next, and what is fetched along with it.
//!
//! In program order it is the earliest. By position it is the next one in the direction the
//! head moves, starting over at the far end (C-LOOK), so that reading `n` scattered pages costs one pass over
//! the device and not `n` seeks: libprefetch's reordering. Neighbours that lie together
//! become one request; gaps up to the profile's infill are read along, because skipping them
//! would cost more.

use std::collections::{BTreeSet, VecDeque};
use std::ops::Range;

use foreread_plan::{FileId, PAGE};
use smallvec::SmallVec;

use crate::{Order, Profile};

/// A run of pages to fetch with one request, and the entries it serves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batch {
    /// The file.
    pub file: FileId,
    /// The pages, gaps included.
    pub pages: Range<u64>,
    /// Ordinals of the entries served.
    pub ordinals: SmallVec<[u64; 4]>,
    /// Pages read only because they lie between others.
    pub infill: SmallVec<[Range<u64>; 1]>,
}

/// The pending entries of one device: their pages stay in the queue, which is asked by ordinal.
#[derive(Debug, Default)]
pub struct Sweep {
    /// In program order: ordinals, ascending. 8 bytes an entry.
    in_order: VecDeque<u64>,
    /// By position: (position, ordinal). Some 34 bytes an entry, as full as a b-tree's nodes are.
    by_position: BTreeSet<(u64, u64)>,
    head: u64,
}

impl Sweep {
    /// Whether nothing is pending.
    pub fn is_empty(&self) -> bool {
        self.in_order.is_empty() && self.by_position.is_empty()
    }

    /// Add an entry: by its `position` on the device in bytes, or, without one, in program order.
    pub fn push(&mut self, position: Option<u64>, ordinal: u64) {
        if let Some(position) = position {
            self.by_position.insert((position, ordinal));
        } else if self.in_order.back().is_none_or(|&last| last < ordinal) {
            self.in_order.push_back(ordinal);
        } else {
            // Nearly always the last: entries are admitted in this order.
            let at = self.in_order.partition_point(|&one| one < ordinal);
            self.in_order.insert(at, ordinal);
        }
    }

    /// Take the next run. `wanted` tells an entry's pages, or `None` if it was read or expired meanwhile:
    /// then it is dropped and returned in `dropped`.
    pub fn next(
        &mut self,
        profile: &Profile,
        mut wanted: impl FnMut(u64) -> Option<(FileId, Range<u64>)>,
        dropped: &mut Vec<u64>,
    ) -> Option<Batch> {
        let mut batch: Option<(Batch, u64)> = None;
        let mut from = (self.head, 0);
        while let Some(key) = self.candidate(profile.order, from, batch.is_none()) {
            let (position, ordinal) = key;
            let Some((file, pages)) = wanted(ordinal) else {
                self.take(profile.order, key);
                dropped.push(ordinal);
                from = key;
                continue;
            };
            match &mut batch {
                None => {
                    batch = Some((
                        Batch {
                            file,
                            pages,
                            ordinals: SmallVec::from_slice(&[ordinal]),
                            infill: SmallVec::new(),
                        },
                        position,
                    ));
                }
                Some((batch, start)) => {
                    if batch.file != file || !joins(batch, *start, position, &pages, profile) {
                        break;
                    }
                    if pages.start > batch.pages.end {
                        batch.infill.push(batch.pages.end..pages.start);
                    }
                    batch.pages.end = batch.pages.end.max(pages.end);
                    batch.ordinals.push(ordinal);
                }
            }
            self.take(profile.order, key);
            from = (position, ordinal + 1);
        }
        let (batch, start) = batch?;
        if profile.order == Order::Position {
            self.head = start + (batch.pages.end - batch.pages.start) * PAGE;
        }
        Some(batch)
    }

    /// The first entry at or after `from`, or past the far end the very first one.
    fn candidate(&self, order: Order, from: (u64, u64), wrap: bool) -> Option<(u64, u64)> {
        if order == Order::Program {
            return self.in_order.front().map(|&ordinal| (0, ordinal));
        }
        let ahead = self.by_position.range(from..).next();
        match ahead {
            None if wrap => self.by_position.first().copied(),
            other => other.copied(),
        }
    }

    fn take(&mut self, order: Order, key: (u64, u64)) {
        match order {
            Order::Program => drop(self.in_order.pop_front()),
            Order::Position => drop(self.by_position.remove(&key)),
        }
    }

    /// Drop everything pending; the ordinals, in no particular order.
    pub fn drain(&mut self) -> impl Iterator<Item = u64> + use<> {
        let in_order = std::mem::take(&mut self.in_order);
        let by_position = std::mem::take(&mut self.by_position);
        let placed = by_position.into_iter().map(|(_, ordinal)| ordinal);
        in_order.into_iter().chain(placed)
    }
}

/// Whether these pages of the same file extend the batch: ahead or overlapping, near enough, still of
/// allowed size, and as near on the device as in the file.
fn joins(batch: &Batch, start: u64, position: u64, pages: &Range<u64>, profile: &Profile) -> bool {
    pages.start >= batch.pages.start
        && pages.start <= batch.pages.end + profile.infill_pages
        && pages.end - batch.pages.start <= profile.request_pages
        && (profile.order == Order::Program
            || position - start == (pages.start - batch.pages.start) * PAGE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const FILE: FileId = FileId(3);

    /// Push these entries in their order, by position or not.
    fn sweep_of(entries: &[Range<u64>], order: Order) -> Sweep {
        let mut sweep = Sweep::default();
        for (ordinal, pages) in entries.iter().enumerate() {
            let position = (order == Order::Position).then_some(pages.start * PAGE);
            sweep.push(position, ordinal as u64);
        }
        sweep
    }

    fn all(entries: &[Range<u64>], profile: &Profile) -> Vec<Batch> {
        let mut sweep = sweep_of(entries, profile.order);
        let mut dropped = Vec::new();
        let pages = |ordinal: u64| Some((FILE, entries[ordinal as usize].clone()));
        std::iter::from_fn(|| sweep.next(profile, pages, &mut dropped)).collect()
    }

    fn single(pages: &[u64]) -> Vec<Range<u64>> {
        pages.iter().map(|&page| page..page + 1).collect()
    }

    fn exact(order: Order) -> Profile {
        Profile {
            order,
            infill_pages: 0,
            ..Profile::rotational()
        }
    }

    #[test]
    fn the_talks_example_is_fetched_in_one_pass() {
        let entries = single(&[10, 60, 20, 80, 40, 70]);
        let order: Vec<u64> = all(&entries, &exact(Order::Position))
            .iter()
            .map(|batch| batch.pages.start)
            .collect();
        assert_eq!(order, [10, 20, 40, 60, 70, 80]);
    }

    #[test]
    fn program_order_is_kept_and_neighbours_are_merged() {
        let runs: Vec<_> = all(&single(&[9, 3, 4, 5, 1]), &exact(Order::Program))
            .into_iter()
            .map(|batch| batch.pages)
            .collect();
        assert_eq!(runs, [9..10, 3..6, 1..2]);
    }

    #[test]
    fn a_small_gap_is_read_along_and_counted() {
        let profile = Profile {
            infill_pages: 4,
            ..exact(Order::Position)
        };
        let batches = all(&single(&[0, 5, 11]), &profile);
        assert_eq!(batches.len(), 2, "a gap of 4 is filled, a gap of 5 is not");
        assert_eq!(batches[0].pages, 0..6);
        assert_eq!(batches[0].infill.len(), 1);
        assert_eq!(batches[0].infill[0], 1..5);
    }

    #[test]
    fn what_the_program_read_meanwhile_is_dropped() {
        let entries = single(&[0, 10, 20, 30]);
        let mut sweep = sweep_of(&entries, Order::Position);
        let mut dropped = Vec::new();
        let batch = sweep.next(
            &exact(Order::Position),
            |ordinal| (ordinal >= 2).then(|| (FILE, entries[ordinal as usize].clone())),
            &mut dropped,
        );
        assert_eq!(batch.unwrap().ordinals.as_slice(), [2]);
        assert_eq!(dropped, [0, 1]);
    }

    #[test]
    fn entries_placed_late_are_still_asked_for_in_program_order() {
        let mut sweep = Sweep::default();
        for ordinal in [5, 7, 2, 6] {
            sweep.push(None, ordinal);
        }
        assert_eq!(sweep.drain().collect::<Vec<_>>(), [2, 5, 6, 7]);
    }

    proptest! {
        /// Each entry is fetched exactly once, within the request size, and a pass never turns back.
        #[test]
        fn every_entry_is_fetched_once_in_passes(
            pages in proptest::collection::vec((0u64..2000, 1u64..8), 1..300),
            infill in 0u64..16,
        ) {
            let profile = Profile { infill_pages: infill, request_pages: 64, ..exact(Order::Position) };
            let entries: Vec<_> = pages.iter().map(|&(first, count)| first..first + count).collect();
            let batches = all(&entries, &profile);
            let mut served: Vec<u64> = batches.iter().flat_map(|b| b.ordinals.clone()).collect();
            served.sort_unstable();
            prop_assert_eq!(served, (0..pages.len() as u64).collect::<Vec<_>>());
            for batch in &batches {
                prop_assert!(batch.pages.end - batch.pages.start <= 64);
                for &ordinal in &batch.ordinals {
                    let (first, count) = pages[ordinal as usize];
                    prop_assert!(batch.pages.start <= first && first + count <= batch.pages.end);
                }
                for page in batch.pages.clone() {
                    let wanted = batch.ordinals.iter().any(|&at| entries[at as usize].contains(&page));
                    let infill = batch.infill.iter().any(|gap| gap.contains(&page));
                    prop_assert!(wanted != infill, "page {}", page);
                }
            }
            let turns = batches.windows(2).filter(|w| w[1].pages.start < w[0].pages.start).count();
            prop_assert!(turns <= 1, "{} turns", turns);
        }
    }
}
