//! Sets of pages of files.
//!
//! Invariant: no empty mask is kept. A set takes 24 bytes or so for each 64 pages that it has any of.

use std::ops::Range;

use foreread_plan::FileId;
use rustc_hash::{FxHashMap, FxHashSet};

const CHUNK: u64 = Pages::CHUNK;

/// The pages of a plan.
#[derive(Debug, Default)]
pub(crate) struct Planned {
    /// All of them.
    pub(crate) all: Pages,
    /// Pages left to the kernel's read-ahead.
    pub(crate) left: Pages,
    /// Files that it has pages of.
    pub(crate) files: FxHashSet<FileId>,
    /// Waiting of reads by file in the recorded run, in ns, if there was any.
    pub(crate) waited: FxHashMap<FileId, u64>,
}

/// Pages of files, by number.
#[derive(Clone, Debug, Default)]
pub(crate) struct Pages(FxHashMap<(FileId, u64), u64>);

impl Pages {
    /// Pages in one mask.
    pub(crate) const CHUNK: u64 = 64;

    /// The chunks that the set has pages of, in no order.
    pub(crate) fn chunks(&self) -> impl Iterator<Item = (FileId, u64)> {
        self.0.keys().copied()
    }

    /// The pages of a chunk, a bit each.
    pub(crate) fn mask(&self, file: FileId, chunk: u64) -> u64 {
        self.0.get(&(file, chunk)).copied().unwrap_or(0)
    }

    /// Adds pages. Returns the number of new ones.
    pub(crate) fn add(&mut self, file: FileId, pages: Range<u64>) -> u64 {
        masks(pages)
            .map(|(chunk, mask)| self.add_mask(file, chunk, mask))
            .sum()
    }

    /// Adds pages of a chunk. Returns the number of new ones.
    pub(crate) fn add_mask(&mut self, file: FileId, chunk: u64, mask: u64) -> u64 {
        let known = self.0.entry((file, chunk)).or_default();
        let new = mask & !*known;
        *known |= mask;
        u64::from(new.count_ones())
    }

    /// Adds pages; the runs of those that are new, in order.
    pub(crate) fn fresh(&mut self, file: FileId, pages: Range<u64>, out: &mut Vec<Range<u64>>) {
        for (chunk, mask) in masks(pages) {
            let known = self.0.entry((file, chunk)).or_default();
            let mut left = mask & !*known;
            *known |= mask;
            while left != 0 {
                let first = u64::from(left.trailing_zeros());
                let count = u64::from((left >> first).trailing_ones());
                left &= !(run(count) << first);
                let start = chunk * CHUNK + first;
                match out.last_mut() {
                    Some(last) if last.end == start => last.end += count,
                    _ => out.push(start..start + count),
                }
            }
        }
    }

    /// Number of these pages that are in the set.
    pub(crate) fn count(&self, file: FileId, pages: Range<u64>) -> u64 {
        masks(pages)
            .map(|(chunk, mask)| u64::from((mask & self.mask(file, chunk)).count_ones()))
            .sum()
    }

    /// Number of pages of the set that are in neither of the others.
    pub(crate) fn outside(&self, others: [&Self; 2]) -> u64 {
        let outside = self.0.iter().map(|((file, chunk), mask)| {
            let theirs = others.map(|other| other.mask(*file, *chunk));
            u64::from((mask & !theirs[0] & !theirs[1]).count_ones())
        });
        outside.sum()
    }

    /// True if all these pages are in the set.
    pub(crate) fn has_all(&self, file: FileId, pages: Range<u64>) -> bool {
        let count = pages.end - pages.start;
        self.count(file, pages) == count
    }

    /// True if any of these pages is in the set.
    pub(crate) fn has_any(&self, file: FileId, mut pages: Range<u64>) -> bool {
        pages.end = pages.end.max(pages.start + 1);
        self.count(file, pages) > 0
    }
}

/// A mask of this many low bits.
fn run(count: u64) -> u64 {
    u64::MAX >> (CHUNK - count)
}

/// The chunks that make up a range of pages, and their masks.
pub(crate) fn masks(pages: Range<u64>) -> impl Iterator<Item = (u64, u64)> {
    let mut page = pages.start;
    std::iter::from_fn(move || {
        if page >= pages.end {
            return None;
        }
        let chunk = page / CHUNK;
        let end = pages.end.min((chunk + 1) * CHUNK);
        let mask = run(end - page) << (page % CHUNK);
        page = end;
        Some((chunk, mask))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn a_set_has_what_was_added_and_tells_what_is_new(
            ranges in prop::collection::vec((0u32..3, 0u64..400, 0u64..150), 0..40),
        ) {
            let (mut set, mut other, mut model) = (Pages::default(), Pages::default(), BTreeSet::new());
            for (file, start, len) in ranges {
                let (file, pages) = (FileId(file), start..start + len);
                let new: Vec<_> = pages.clone().filter(|&page| model.insert((file, page))).collect();
                let mut fresh = Vec::new();
                other.fresh(file, pages.clone(), &mut fresh);
                prop_assert_eq!(&fresh.iter().cloned().flatten().collect::<Vec<_>>(), &new);
                prop_assert!(fresh.windows(2).all(|two| two[0].end < two[1].start));
                prop_assert_eq!(set.add(file, pages), new.len() as u64);
            }
            for file in (0..3).map(FileId) {
                let known = model.iter().filter(|(one, _)| *one == file).count() as u64;
                prop_assert_eq!(set.count(file, 0..600), known);
                prop_assert_eq!(other.count(file, 0..600), known);
            }
        }
    }
}
