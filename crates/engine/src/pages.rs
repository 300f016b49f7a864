//! The pages issued and not yet read: which they are, and which have arrived.
//!
//! Kept as bitmaps over chunks of 64 pages, so that a dense plan costs under a byte a page.
//! Invariants: `arrived` is a subset of `issued`; a chunk with no bit set is not kept.

use std::ops::Range;

use foreread_plan::FileId;
use rustc_hash::FxHashMap;

const CHUNK: u64 = 64;

#[derive(Clone, Copy, Debug, Default)]
struct Chunk {
    issued: u64,
    arrived: u64,
    /// When the last of them arrived, in ns.
    arrived_at: u64,
}

/// Issued pages that the program has not read.
#[derive(Debug, Default)]
pub(crate) struct Pages {
    chunks: FxHashMap<(FileId, u64), Chunk>,
    count: u64,
}

/// What became of pages the program read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Read {
    /// Pages that had arrived before the read began.
    pub(crate) there: u64,
    /// Pages that were still on their way.
    pub(crate) under_way: u64,
}

impl Pages {
    pub(crate) fn is_empty(&self) -> bool {
        self.count == 0
    }

    pub(crate) fn len(&self) -> u64 {
        self.count
    }

    /// Runs of pages that have arrived and are not read, in no order; of very many, no more than about `most`.
    pub(crate) fn waiting(&self, most: usize) -> Vec<(FileId, Range<u64>)> {
        let mut waiting = Vec::new();
        for (&(file, number), chunk) in &self.chunks {
            if waiting.len() >= most {
                break;
            }
            runs(number, chunk.arrived, &mut |run| waiting.push((file, run)));
        }
        waiting
    }

    /// Mark pages as issued; how many were not marked before.
    pub(crate) fn issue(&mut self, file: FileId, pages: &Range<u64>) -> u64 {
        let mut fresh = 0;
        for (chunk, mask) in masks(pages) {
            let entry = self.chunks.entry((file, chunk)).or_default();
            fresh += u64::from((mask & !entry.issued).count_ones());
            entry.issued |= mask;
        }
        self.count += fresh;
        fresh
    }

    /// Mark issued pages as arrived at `now`.
    pub(crate) fn arrive(&mut self, file: FileId, pages: &Range<u64>, now: u64) {
        for (chunk, mask) in masks(pages) {
            if let Some(entry) = self.chunks.get_mut(&(file, chunk)) {
                entry.arrived |= mask & entry.issued;
                entry.arrived_at = now;
            }
        }
    }

    /// The program read these pages, beginning at `start` ns: strike them off. `past` is told each run.
    pub(crate) fn read(
        &mut self,
        file: FileId,
        pages: &Range<u64>,
        start: u64,
        mut past: impl FnMut(Range<u64>),
    ) -> Read {
        let mut read = Read::default();
        self.strike(file, pages, |number, chunk, hit| {
            let there = if chunk.arrived_at <= start {
                hit & chunk.arrived
            } else {
                0
            };
            read.there += u64::from(there.count_ones());
            read.under_way += u64::from((hit & !there).count_ones());
            runs(number, hit, &mut past);
        });
        read
    }

    /// These pages will not be read: strike them off; how many were issued. `past` is told each run.
    pub(crate) fn give_up(
        &mut self,
        file: FileId,
        pages: &Range<u64>,
        mut past: impl FnMut(Range<u64>),
    ) -> u64 {
        let mut count = 0;
        self.strike(file, pages, |number, _, hit| {
            count += u64::from(hit.count_ones());
            runs(number, hit, &mut past);
        });
        count
    }

    fn strike(&mut self, file: FileId, pages: &Range<u64>, mut seen: impl FnMut(u64, &Chunk, u64)) {
        if self.count == 0 {
            return;
        }
        for (number, mask) in masks(pages) {
            let Some(chunk) = self.chunks.get_mut(&(file, number)) else {
                continue;
            };
            let hit = chunk.issued & mask;
            if hit == 0 {
                continue;
            }
            seen(number, chunk, hit);
            chunk.issued &= !hit;
            chunk.arrived &= !hit;
            self.count -= u64::from(hit.count_ones());
            if chunk.issued == 0 {
                self.chunks.remove(&(file, number));
            }
        }
    }
}

/// The bits of a chunk as runs of pages.
fn runs(chunk: u64, mut bits: u64, past: &mut impl FnMut(Range<u64>)) {
    let mut at = chunk * CHUNK;
    while bits != 0 {
        let gap = bits.trailing_zeros();
        bits >>= gap;
        at += u64::from(gap);
        let len = bits.trailing_ones();
        past(at..at + u64::from(len));
        bits = bits.checked_shr(len).unwrap_or(0);
        at += u64::from(len);
    }
}

/// A page range as (chunk, bits in it).
fn masks(pages: &Range<u64>) -> impl Iterator<Item = (u64, u64)> + use<> {
    let (start, end) = (pages.start, pages.end.max(pages.start));
    let last = if start == end {
        start / CHUNK
    } else {
        (end - 1) / CHUNK + 1
    };
    (start / CHUNK..last).map(move |chunk| {
        let from = start.saturating_sub(chunk * CHUNK).min(CHUNK);
        let to = (end - chunk * CHUNK).min(CHUNK);
        let below = |bits: u64| {
            if bits == CHUNK {
                u64::MAX
            } else {
                (1 << bits) - 1
            }
        };
        (chunk, below(to) & !below(from))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    const FILE: FileId = FileId(0);

    #[test]
    fn a_page_that_arrived_after_the_read_began_was_under_way() {
        let mut pages = Pages::default();
        pages.issue(FILE, &(0..2));
        pages.arrive(FILE, &(0..2), 100);
        assert_eq!(
            pages.read(FILE, &(0..1), 50, |_| ()),
            Read {
                there: 0,
                under_way: 1
            }
        );
        assert_eq!(
            pages.read(FILE, &(1..2), 100, |_| ()),
            Read {
                there: 1,
                under_way: 0
            }
        );
        assert!(pages.is_empty());
    }

    #[derive(Clone, Debug)]
    enum Op {
        Issue(Range<u64>),
        Arrive(Range<u64>),
        Read(Range<u64>),
        GiveUp(Range<u64>),
    }

    fn op() -> impl Strategy<Value = Op> {
        let range = || (0u64..300, 0u64..140).prop_map(|(start, len)| start..start + len);
        prop_oneof![
            range().prop_map(Op::Issue),
            range().prop_map(Op::Arrive),
            range().prop_map(Op::Read),
            range().prop_map(Op::GiveUp),
        ]
    }

    proptest! {
        /// Against a map that keeps every page by itself.
        #[test]
        fn the_bitmaps_agree_with_a_page_by_page_map(ops in proptest::collection::vec(op(), 0..80)) {
            let mut pages = Pages::default();
            let mut reference: BTreeMap<u64, bool> = BTreeMap::new();
            for op in ops {
                match op {
                    Op::Issue(range) => {
                        let fresh = range.clone().filter(|page| !reference.contains_key(page)).count();
                        prop_assert_eq!(pages.issue(FILE, &range), fresh as u64);
                        for page in range { reference.entry(page).or_insert(false); }
                    }
                    Op::Arrive(range) => {
                        pages.arrive(FILE, &range, 1);
                        for page in range { reference.entry(page).and_modify(|there| *there = true); }
                    }
                    Op::Read(range) => {
                        let mut expected = Read::default();
                        let mut struck = Vec::new();
                        for page in range.clone() {
                            match reference.remove(&page) {
                                Some(true) => expected.there += 1,
                                Some(false) => expected.under_way += 1,
                                None => continue,
                            }
                            struck.push(page);
                        }
                        let mut past = Vec::new();
                        prop_assert_eq!(pages.read(FILE, &range, 2, |run| past.extend(run)), expected);
                        prop_assert_eq!(past, struck);
                    }
                    Op::GiveUp(range) => {
                        let expected = range.clone().filter(|page| reference.remove(page).is_some()).count();
                        prop_assert_eq!(pages.give_up(FILE, &range, |_| ()), expected as u64);
                    }
                }
                let mut waiting: Vec<u64> = pages.waiting(usize::MAX).into_iter().flat_map(|(_, run)| run).collect();
                waiting.sort_unstable();
                let arrived = reference.iter().filter(|(_, there)| **there).map(|(&page, _)| page);
                prop_assert_eq!(waiting, arrived.collect::<Vec<_>>());
                prop_assert_eq!(pages.len(), reference.len() as u64);
                prop_assert_eq!(pages.is_empty(), reference.is_empty());
            }
        }
    }
}
