//! The pages issued and not yet read: which they are, which have arrived, and whether the program is past them.
//!
//! A page stays here until the program reads it, it leaves memory, or the session ends. If the program has passed a page in its plan, or
//! has left the plan, it may still read that page: such a page is no longer expected, but counts as read when it is.
//!
//! Kept as bitmaps over chunks of 64 pages, so that a dense plan costs about a byte a page.
//! Invariants: all other bitmaps are subsets of `issued`; a chunk with no bit set is not kept; `waited_for` counts the
//! pages issued and not passed.

use std::ops::Range;

use foreread_plan::{FileId, Ledger};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

/// Pages of a bit map: the bits of a word.
const CHUNK: u64 = 64;

#[derive(Clone, Debug, Default)]
struct Chunk {
    issued: u64,
    arrived: Arrivals,
    /// The program is past the entries that they were issued for.
    passed: u64,
    /// Some entry asked for them; the others are infill.
    wanted: u64,
    /// The program was not watched at some time since they were issued, and may have read them.
    unwatched: u64,
}

/// Arrival times of the pages of a chunk: a time in ns and its pages, each page once. Most pages of a chunk arrive together.
#[derive(Clone, Debug, Default)]
struct Arrivals(SmallVec<[(u64, u64); 1]>);

impl Arrivals {
    /// The pages that had arrived at `time`, in ns.
    fn by(&self, time: u64) -> u64 {
        let in_time = self.0.iter().filter(|(at, _)| *at <= time);
        in_time.fold(0, |all, (_, pages)| all | pages)
    }

    /// The pages that have arrived.
    fn all(&self) -> u64 {
        self.by(u64::MAX)
    }

    /// Notes that these pages arrived at `time`, in ns. Pages that had arrived before are unchanged.
    fn add(&mut self, pages: u64, time: u64) {
        let new = pages & !self.all();
        if new == 0 {
            return;
        }
        match self.0.last_mut() {
            Some((at, pages)) if *at == time => *pages |= new,
            _ => self.0.push((time, new)),
        }
    }

    fn remove(&mut self, pages: u64) {
        self.0.retain(|(_, arrived)| {
            *arrived &= !pages;
            *arrived != 0
        });
    }
}

/// Issued pages that the program has not read.
#[derive(Debug, Default)]
pub(crate) struct Pages {
    chunks: FxHashMap<(FileId, u64), Chunk>,
    waited_for: u64,
    /// True while the program is not observed.
    unwatched: bool,
}

/// Runs of pages, by file.
pub(crate) type Waiting = Vec<(FileId, Range<u64>)>;

/// Pages that the program read, by fate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Read {
    /// Pages that had arrived before the read began.
    pub(crate) there: u64,
    /// Pages that were still on their way.
    pub(crate) under_way: u64,
}

/// Pages that were issued.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Issued {
    /// All of them that come from the device.
    pub(crate) pages: u64,
    /// Pages of these that had been issued before and are fetched again: they were evicted before they were read.
    pub(crate) again: u64,
}

/// Pages that the program was not seen to read, by fate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Unread {
    pub(crate) wasted: u64,
    pub(crate) infill: u64,
    pub(crate) unknown: u64,
}

impl From<Unread> for Ledger {
    fn from(unread: Unread) -> Self {
        Self::of_pages(Self {
            wasted: unread.wasted,
            infill: unread.infill,
            unknown: unread.unknown,
            ..Self::default()
        })
    }
}

impl Unread {
    fn add(&mut self, chunk: &Chunk, pages: u64) {
        let seen = pages & !chunk.unwatched;
        self.wasted += u64::from((seen & chunk.wanted).count_ones());
        self.infill += u64::from((seen & !chunk.wanted).count_ones());
        self.unknown += u64::from((pages & chunk.unwatched).count_ones());
    }
}

impl Pages {
    /// Pages that are waited for.
    pub(crate) fn len(&self) -> u64 {
        self.waited_for
    }

    /// Ranges of pages that have arrived and are still waited for, by file and page. Beyond `files` files or about `most` ranges the result
    /// is an even sample, a different one each `turn`, so that every range is returned sometime. Also returns true if the result is
    /// complete.
    pub(crate) fn waiting(&self, turn: usize, files: usize, most: usize) -> (Waiting, bool) {
        let chunks = self.chunks.iter();
        let chunks = chunks.map(|(&place, chunk)| (place, chunk.arrived.all() & !chunk.passed));
        let mut chunks: Vec<_> = chunks.filter(|(_, pages)| *pages != 0).collect();
        chunks.sort_unstable();
        let by_file = || chunks.chunk_by(|((one, _), _), ((other, _), _)| one == other);
        let every = by_file().count().div_ceil(files.max(1)).max(1);
        let sampled = by_file().skip(turn % every).step_by(every).flatten();
        let count = sampled
            .clone()
            .map(|(_, pages)| runs_in(*pages))
            .sum::<u32>();
        let every_chunk = (count as usize).div_ceil(most.max(1)).max(1);
        let sampled = sampled
            .skip(turn / every % every_chunk)
            .step_by(every_chunk);
        let mut waiting = Vec::new();
        for &((file, number), pages) in sampled {
            runs(number, pages, &mut |run| waiting.push((file, run)));
        }
        (waiting, every == 1 && every_chunk == 1)
    }

    /// Marks pages as issued. Pages that had arrived before and are fetched again begin anew.
    pub(crate) fn issue(&mut self, file: FileId, pages: &Range<u64>) -> Issued {
        let mut issued = Issued::default();
        for (chunk, mask) in masks(pages) {
            let entry = self.chunks.entry((file, chunk)).or_default();
            let again = mask & entry.arrived.all();
            let fresh = mask & !entry.issued;
            let waited_for = fresh | again & entry.passed;
            entry.issued |= mask;
            entry.arrived.remove(again);
            for kept in [&mut entry.passed, &mut entry.wanted, &mut entry.unwatched] {
                *kept &= !again;
            }
            if self.unwatched {
                entry.unwatched |= mask;
            }
            self.waited_for += u64::from(waited_for.count_ones());
            issued.again += u64::from(again.count_ones());
            issued.pages += u64::from((fresh | again).count_ones());
        }
        issued
    }

    /// Mark issued pages as arrived at `now`.
    pub(crate) fn arrive(&mut self, file: FileId, pages: &Range<u64>, now: u64) {
        self.mark(file, pages, |_, chunk, pages| {
            chunk.arrived.add(pages, now);
        });
    }

    /// The program read these pages, beginning at `start` ns: strikes them off. Calls `past` with each run.
    pub(crate) fn read(
        &mut self,
        file: FileId,
        pages: &Range<u64>,
        start: u64,
        mut past: impl FnMut(Range<u64>),
    ) -> Read {
        let mut read = Read::default();
        self.strike(file, pages, |number, chunk, hit| {
            let there = hit & chunk.arrived.by(start);
            read.there += u64::from(there.count_ones());
            read.under_way += u64::from((hit & !there).count_ones());
            runs(number, hit, &mut past);
        });
        read
    }

    /// Some entry asked for these pages.
    pub(crate) fn want(&mut self, file: FileId, pages: &Range<u64>) {
        self.mark(file, pages, |_, chunk, pages| chunk.wanted |= pages);
    }

    /// The program is past these pages in its plan: nobody waits for them any more. Calls `past` with each run of
    /// unread pages.
    pub(crate) fn pass(
        &mut self,
        file: FileId,
        pages: &Range<u64>,
        mut past: impl FnMut(Range<u64>),
    ) {
        let mut passed = 0;
        self.mark(file, pages, |number, chunk, pages| {
            passed += u64::from((pages & !chunk.passed).count_ones());
            chunk.passed |= pages;
            runs(number, pages, &mut past);
        });
        self.waited_for -= passed;
    }

    /// Strikes off these pages, which are gone from memory. Returns the number of issued ones.
    pub(crate) fn evict(&mut self, file: FileId, pages: &Range<u64>) -> u64 {
        let mut count = 0;
        self.strike(file, pages, |_, _, hit| {
            count += u64::from(hit.count_ones());
        });
        count
    }

    /// These pages were found gone from memory by a check that began at `since`. Strikes off those that had arrived by then, calls `lost`
    /// with each range of them, and returns their number.
    pub(crate) fn evict_arrived(
        &mut self,
        file: FileId,
        pages: &Range<u64>,
        since: u64,
        mut lost: impl FnMut(Range<u64>),
    ) -> u64 {
        let mut gone = Vec::new();
        self.mark(file, pages, |number, chunk, pages| {
            runs(number, pages & chunk.arrived.by(since), &mut |run| {
                gone.push(run);
            });
        });
        let mut count = 0;
        for run in gone {
            count += self.evict(file, &run);
            lost(run);
        }
        count
    }

    /// Strikes off these pages, which are evicted unread. Returns their fates.
    pub(crate) fn give_back(&mut self, file: FileId, pages: &Range<u64>) -> Unread {
        let mut unread = Unread::default();
        self.strike(file, pages, |_, chunk, hit| unread.add(chunk, hit));
        unread
    }

    /// The program is not observed from now on, and may read pages unseen.
    pub(crate) fn look_away(&mut self) {
        self.unwatched = true;
        for chunk in self.chunks.values_mut() {
            chunk.unwatched = chunk.issued;
        }
    }

    /// The program's reads of a file are unknown: its touches are sampled, and some may follow the last sample.
    pub(crate) fn doubt(&mut self, file: FileId) {
        for ((of, _), chunk) in &mut self.chunks {
            if *of == file {
                chunk.unwatched = chunk.issued;
            }
        }
    }

    /// Strike off all that is left, at the end of the session.
    pub(crate) fn rest(&mut self) -> Unread {
        let mut unread = Unread::default();
        for (_, chunk) in self.chunks.drain() {
            unread.add(&chunk, chunk.issued);
        }
        self.waited_for = 0;
        unread
    }

    /// Mark those of these pages that are issued.
    fn mark(
        &mut self,
        file: FileId,
        pages: &Range<u64>,
        mut mark: impl FnMut(u64, &mut Chunk, u64),
    ) {
        if self.chunks.is_empty() {
            return;
        }
        for (number, mask) in masks(pages) {
            if let Some(chunk) = self.chunks.get_mut(&(file, number))
                && chunk.issued & mask != 0
            {
                let hit = chunk.issued & mask;
                mark(number, chunk, hit);
            }
        }
    }

    fn strike(&mut self, file: FileId, pages: &Range<u64>, mut seen: impl FnMut(u64, &Chunk, u64)) {
        if self.chunks.is_empty() {
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
            self.waited_for -= u64::from((hit & !chunk.passed).count_ones());
            chunk.arrived.remove(hit);
            for bits in [
                &mut chunk.issued,
                &mut chunk.passed,
                &mut chunk.wanted,
                &mut chunk.unwatched,
            ] {
                *bits &= !hit;
            }
            if chunk.issued == 0 {
                self.chunks.remove(&(file, number));
            }
        }
    }
}

/// Number of ranges in the bits of a chunk.
fn runs_in(bits: u64) -> u32 {
    (bits & !(bits << 1)).count_ones()
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
mod tests;
