//! Which pending entry is fetched next, and what is fetched along with it.
//!
//! In program order it is the earliest. By position it is the next one in the direction the
//! head moves, starting over at the far end (C-LOOK), so that reading `n` scattered pages costs one pass over
//! the device and not `n` seeks: libprefetch's reordering. Neighbours that lie together
//! become one request; gaps up to the profile's infill are read along, because skipping them
//! would cost more.

use std::collections::BTreeMap;
use std::ops::Range;

use foreread_plan::{FileId, PAGE};

use crate::{Order, Profile};

/// A pending entry.
#[derive(Clone, Copy, Debug)]
struct Pending {
    file: FileId,
    first: u64,
    pages: u64,
}

/// A run of pages to fetch with one request, and the entries it serves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batch {
    /// The file.
    pub file: FileId,
    /// The pages, gaps included.
    pub pages: Range<u64>,
    /// Ordinals of the entries served.
    pub ordinals: Vec<u64>,
    /// Pages read only because they lie between others.
    pub infill: u64,
}

/// The pending entries of one device.
#[derive(Debug, Default)]
pub struct Sweep {
    /// Keyed by (position or ordinal, ordinal).
    pending: BTreeMap<(u64, u64), Pending>,
    head: u64,
}

impl Sweep {
    /// Whether nothing is pending.
    pub fn is_empty(&self) -> bool {
        self.pending.is_empty()
    }

    /// Add an entry. `key` is its position on the device in bytes, or its ordinal in program order.
    pub fn push(&mut self, key: u64, ordinal: u64, file: FileId, pages: Range<u64>) {
        self.pending.insert(
            (key, ordinal),
            Pending {
                file,
                first: pages.start,
                pages: pages.end - pages.start,
            },
        );
    }

    /// Take the next run. Entries for which `wanted` is false (read or expired meanwhile) are
    /// dropped and returned in `dropped`.
    pub fn next(
        &mut self,
        profile: &Profile,
        mut wanted: impl FnMut(u64) -> bool,
        dropped: &mut Vec<u64>,
    ) -> Option<Batch> {
        let mut batch: Option<(Batch, u64)> = None;
        let mut from = match profile.order {
            Order::Program => (0, 0),
            Order::Position => (self.head, 0),
        };
        while let Some((key, pending)) = self.candidate(from, batch.is_none()) {
            if !wanted(key.1) {
                self.pending.remove(&key);
                dropped.push(key.1);
                from = key;
                continue;
            }
            match &mut batch {
                None => {
                    batch = Some((
                        Batch {
                            file: pending.file,
                            pages: pending.first..pending.first + pending.pages,
                            ordinals: vec![key.1],
                            infill: 0,
                        },
                        key.0,
                    ));
                }
                Some((batch, start)) => {
                    if !joins(batch, *start, key.0, &pending, profile) {
                        break;
                    }
                    batch.infill += pending.first.saturating_sub(batch.pages.end);
                    batch.pages.end = batch.pages.end.max(pending.first + pending.pages);
                    batch.ordinals.push(key.1);
                }
            }
            self.pending.remove(&key);
            from = (key.0, key.1 + 1);
        }
        let (batch, start) = batch?;
        if profile.order == Order::Position {
            self.head = start + (batch.pages.end - batch.pages.start) * PAGE;
        }
        Some(batch)
    }

    /// The first entry at or after `from`, or past the far end the very first one.
    fn candidate(&self, from: (u64, u64), wrap: bool) -> Option<((u64, u64), Pending)> {
        let ahead = self.pending.range(from..).next();
        let (key, pending) = match ahead {
            None if wrap => self.pending.first_key_value()?,
            other => other?,
        };
        Some((*key, *pending))
    }

    /// Drop everything pending, in no particular order.
    pub fn drain(&mut self) -> impl Iterator<Item = u64> + use<> {
        std::mem::take(&mut self.pending)
            .into_keys()
            .map(|(_, ordinal)| ordinal)
    }
}

/// Whether `pending` extends the batch: same file, ahead or overlapping, near enough, still of
/// allowed size, and as near on the device as in the file.
fn joins(batch: &Batch, start: u64, key: u64, pending: &Pending, profile: &Profile) -> bool {
    let end = pending.first + pending.pages;
    batch.file == pending.file
        && pending.first >= batch.pages.start
        && pending.first <= batch.pages.end + profile.infill_pages
        && end - batch.pages.start <= profile.request_pages
        && (profile.order == Order::Program
            || key - start == (pending.first - batch.pages.start) * PAGE)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const FILE: FileId = FileId(3);

    fn all(sweep: &mut Sweep, profile: &Profile) -> Vec<Batch> {
        let mut dropped = Vec::new();
        std::iter::from_fn(|| sweep.next(profile, |_| true, &mut dropped)).collect()
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
        let mut sweep = Sweep::default();
        for (ordinal, page) in [10u64, 60, 20, 80, 40, 70].into_iter().enumerate() {
            sweep.push(page * PAGE, ordinal as u64, FILE, page..page + 1);
        }
        let order: Vec<u64> = all(&mut sweep, &exact(Order::Position))
            .iter()
            .map(|batch| batch.pages.start)
            .collect();
        assert_eq!(order, [10, 20, 40, 60, 70, 80]);
    }

    #[test]
    fn program_order_is_kept_and_neighbours_are_merged() {
        let mut sweep = Sweep::default();
        for (ordinal, page) in [9u64, 3, 4, 5, 1].into_iter().enumerate() {
            sweep.push(ordinal as u64, ordinal as u64, FILE, page..page + 1);
        }
        let runs: Vec<_> = all(&mut sweep, &exact(Order::Program))
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
        let mut sweep = Sweep::default();
        for page in [0u64, 5, 11] {
            sweep.push(page * PAGE, page, FILE, page..page + 1);
        }
        let batches = all(&mut sweep, &profile);
        assert_eq!(batches.len(), 2, "a gap of 4 is filled, a gap of 5 is not");
        assert_eq!((batches[0].pages.clone(), batches[0].infill), (0..6, 4));
    }

    #[test]
    fn what_the_program_read_meanwhile_is_dropped() {
        let mut sweep = Sweep::default();
        for page in 0..4u64 {
            sweep.push(page * PAGE * 10, page, FILE, page * 10..page * 10 + 1);
        }
        let mut dropped = Vec::new();
        let batch = sweep.next(
            &exact(Order::Position),
            |ordinal| ordinal >= 2,
            &mut dropped,
        );
        assert_eq!(batch.unwrap().ordinals, [2]);
        assert_eq!(dropped, [0, 1]);
    }

    proptest! {
        /// Each entry is fetched exactly once, within the request size, and a pass never turns back.
        #[test]
        fn every_entry_is_fetched_once_in_passes(
            pages in proptest::collection::vec((0u64..2000, 1u64..8), 1..300),
            infill in 0u64..16,
        ) {
            let profile = Profile { infill_pages: infill, request_pages: 64, ..exact(Order::Position) };
            let mut sweep = Sweep::default();
            for (ordinal, &(first, count)) in pages.iter().enumerate() {
                sweep.push(first * PAGE, ordinal as u64, FILE, first..first + count);
            }
            let batches = all(&mut sweep, &profile);
            let mut served: Vec<u64> = batches.iter().flat_map(|b| b.ordinals.clone()).collect();
            served.sort_unstable();
            prop_assert_eq!(served, (0..pages.len() as u64).collect::<Vec<_>>());
            for batch in &batches {
                prop_assert!(batch.pages.end - batch.pages.start <= 64);
                for &ordinal in &batch.ordinals {
                    let (first, count) = pages[ordinal as usize];
                    prop_assert!(batch.pages.start <= first && first + count <= batch.pages.end);
                }
            }
            let turns = batches.windows(2).filter(|w| w[1].pages.start < w[0].pages.start).count();
            prop_assert!(turns <= 1, "{} turns", turns);
        }
    }
}
