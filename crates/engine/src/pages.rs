//! The pages issued and not yet read: which they are, which have arrived, and whether the program is past them.
//!
//! A page stays here until the program reads it, it is gone from memory, or the session ends. That the program has
//! passed a page in its plan, or has left the plan, says nothing of whether it will read that page: a page passed is
//! not waited for any more, and still entered as read when it is.
//!
//! Kept as bitmaps over chunks of 64 pages, so that a dense plan costs about a byte a page.
//! Invariants: all other bitmaps are subsets of `issued`; a chunk with no bit set is not kept; `waited_for` counts the
//! pages issued and not passed.

use std::ops::Range;

use foreread_plan::FileId;
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

/// Pages a bit map tells of: the bits of a word.
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

/// Which pages of a chunk arrived when: a time in ns and the pages, each page once. The pages of a chunk mostly arrive together.
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

    /// These pages arrived at `time`, in ns. Those that had arrived before stay as they are.
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
    /// Whether the program is not watched now.
    unwatched: bool,
}

/// Runs of pages, by file.
pub(crate) type Waiting = Vec<(FileId, Range<u64>)>;

/// What became of pages the program read.
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
    /// Of these, pages that had been issued before and are fetched again: they were evicted before they were read.
    pub(crate) again: u64,
}

/// What becomes of pages the program was not seen to read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Unread {
    pub(crate) wasted: u64,
    pub(crate) infill: u64,
    pub(crate) unknown: u64,
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

    /// Runs of pages that have arrived and are waited for, by file and page. Of more than so many files and about so many runs it is
    /// an even sample, which is another one each `turn`: all of them have theirs. Whether these are all.
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

    /// Mark pages as issued. Those that had arrived before and are fetched again begin anew.
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

    /// The program is past these pages in its plan: nobody waits for them any more. `past` is told each run of pages
    /// that are unread.
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

    /// These pages are gone from memory: strike them off; how many were issued.
    pub(crate) fn evict(&mut self, file: FileId, pages: &Range<u64>) -> u64 {
        let mut count = 0;
        self.strike(file, pages, |_, _, hit| {
            count += u64::from(hit.count_ones());
        });
        count
    }

    /// These pages were found gone from memory by a look that began at `since`: strike off those that had arrived by then; how
    /// many they are. `lost` is told each run of them.
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

    /// These pages are given back unread: strike them off.
    pub(crate) fn give_back(&mut self, file: FileId, pages: &Range<u64>) -> Unread {
        let mut unread = Unread::default();
        self.strike(file, pages, |_, chunk, hit| unread.add(chunk, hit));
        unread
    }

    /// The program is not watched from now on. What it reads then, nobody knows.
    pub(crate) fn look_away(&mut self) {
        self.unwatched = true;
        for chunk in self.chunks.values_mut() {
            chunk.unwatched = chunk.issued;
        }
    }

    /// Nobody knows what the program has read of a file: its touches are sampled, and may come after the last sample.
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

/// How many runs the bits of a chunk are.
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
        assert_eq!(pages.len(), 0);
    }

    #[test]
    fn when_its_neighbours_arrived_says_nothing_of_a_page() {
        let mut pages = Pages::default();
        pages.issue(FILE, &(0..3));
        pages.arrive(FILE, &(0..1), 100);
        pages.arrive(FILE, &(1..2), 200);
        pages.arrive(FILE, &(0..2), 300);
        let read = pages.read(FILE, &(0..3), 150, |_| ());
        assert_eq!((read.there, read.under_way), (1, 2));
        pages.issue(FILE, &(0..2));
        pages.arrive(FILE, &(0..1), 400);
        pages.arrive(FILE, &(1..2), 500);
        assert_eq!(pages.evict_arrived(FILE, &(0..2), 450, |_| ()), 1);
    }

    #[test]
    fn pages_that_wait_are_looked_for_in_turn_and_each_time_all_over() {
        let mut pages = Pages::default();
        let of = |file: u32| (0..10).map(move |n| (FileId(file), n * 1000..n * 1000 + 1));
        let all: Vec<_> = (0..12).flat_map(of).collect();
        for (file, run) in &all {
            pages.issue(*file, run);
            pages.arrive(*file, run, 1);
        }
        assert_eq!(pages.waiting(5, 12, 120), (all.clone(), true));
        let mut looked = Vec::new();
        for turn in 0..6 {
            let (waiting, is_all) = pages.waiting(turn, 4, 20);
            let files: Vec<_> = waiting.chunk_by(|one, other| one.0 == other.0).collect();
            let spread = |runs: &&[(FileId, Range<u64>)]| runs.len() == 5;
            assert!(
                !is_all && files.len() == 4 && files.iter().all(spread),
                "{files:?}"
            );
            looked.extend(waiting);
        }
        looked.sort_unstable_by_key(|(file, run)| (*file, run.start));
        assert_eq!(looked, all);
    }

    #[test]
    fn a_page_that_was_passed_is_still_read() {
        let mut pages = Pages::default();
        pages.issue(FILE, &(0..4));
        pages.arrive(FILE, &(0..4), 100);
        let mut past = Vec::new();
        pages.pass(FILE, &(0..3), |run| past.push(run));
        assert_eq!(past.into_iter().flatten().collect::<Vec<_>>(), [0, 1, 2]);
        assert_eq!(pages.len(), 1);
        assert_eq!(pages.waiting(0, usize::MAX, usize::MAX).0, [(FILE, 3..4)]);
        let read = pages.read(FILE, &(1..2), 200, |_| ());
        assert_eq!((read.there, read.under_way), (1, 0));
        pages.want(FILE, &(2..4));
        let left = Unread {
            wasted: 2,
            infill: 1,
            unknown: 0,
        };
        assert_eq!(pages.rest(), left);
    }

    #[test]
    fn of_a_page_that_was_there_while_nobody_watched_nothing_is_claimed() {
        let mut pages = Pages::default();
        pages.issue(FILE, &(0..2));
        pages.want(FILE, &(0..3));
        pages.look_away();
        pages.issue(FILE, &(2..3));
        pages.want(FILE, &(2..3));
        let read = pages.read(FILE, &(0..1), 200, |_| ());
        assert_eq!(read.under_way, 1, "what was seen is known all the same");
        let left = Unread {
            wasted: 0,
            infill: 0,
            unknown: 2,
        };
        assert_eq!(pages.rest(), left);
    }

    #[test]
    fn of_a_page_that_may_have_been_touched_after_the_last_sample_nothing_is_claimed() {
        let mut pages = Pages::default();
        for file in [FileId(0), FileId(1)] {
            pages.issue(file, &(0..2));
            pages.want(file, &(0..2));
        }
        pages.doubt(FileId(1));
        let left = Unread {
            wasted: 2,
            infill: 0,
            unknown: 2,
        };
        assert_eq!(pages.rest(), left);
    }

    #[derive(Clone, Debug)]
    enum Op {
        Issue(Range<u64>),
        Arrive(Range<u64>),
        Read(Range<u64>),
        Want(Range<u64>),
        Pass(Range<u64>),
        Evict(Range<u64>),
        GiveBack(Range<u64>),
    }

    fn op() -> impl Strategy<Value = Op> {
        let range = || (0u64..300, 0u64..140).prop_map(|(start, len)| start..start + len);
        prop_oneof![
            range().prop_map(Op::Issue),
            range().prop_map(Op::Issue),
            range().prop_map(Op::Arrive),
            range().prop_map(Op::Read),
            range().prop_map(Op::Want),
            range().prop_map(Op::Pass),
            range().prop_map(Op::Evict),
            range().prop_map(Op::GiveBack),
        ]
    }

    /// One page, by itself.
    #[derive(Clone, Copy, Debug, Default)]
    struct Page {
        arrived: bool,
        passed: bool,
        wanted: bool,
        unwatched: bool,
    }

    fn enter(unread: &mut Unread, page: Page) {
        match page {
            Page {
                unwatched: true, ..
            } => unread.unknown += 1,
            Page { wanted: true, .. } => unread.wasted += 1,
            _ => unread.infill += 1,
        }
    }

    proptest! {
        /// Against a map that keeps every page by itself.
        #[test]
        fn the_bitmaps_agree_with_a_page_by_page_map(
            ops in proptest::collection::vec(op(), 0..80),
            looks_away_at in 0usize..160,
        ) {
            let mut pages = Pages::default();
            let mut reference: BTreeMap<u64, Page> = BTreeMap::new();
            let mut unwatched = false;
            // Every page issued, less those that were accounted for.
            let mut open = 0;
            for (at, op) in ops.into_iter().enumerate() {
                if at == looks_away_at {
                    pages.look_away();
                    unwatched = true;
                    reference.values_mut().for_each(|page| page.unwatched = true);
                }
                match op {
                    Op::Issue(range) => {
                        let mut expected = Issued::default();
                        for page in range.clone() {
                            let before = reference.get(&page).copied();
                            let again = before.is_some_and(|page| page.arrived);
                            expected.again += u64::from(again);
                            expected.pages += u64::from(again || before.is_none());
                            let new = if again { Page::default() } else { before.unwrap_or_default() };
                            reference.insert(page, Page { unwatched: new.unwatched || unwatched, ..new });
                        }
                        prop_assert_eq!(pages.issue(FILE, &range), expected);
                        open += expected.pages - expected.again;
                    }
                    Op::Arrive(range) => {
                        pages.arrive(FILE, &range, 1);
                        for page in range { reference.entry(page).and_modify(|page| page.arrived = true); }
                    }
                    Op::Read(range) => {
                        let mut expected = Read::default();
                        let mut struck = Vec::new();
                        for page in range.clone() {
                            match reference.remove(&page) {
                                Some(Page { arrived: true, .. }) => expected.there += 1,
                                Some(_) => expected.under_way += 1,
                                None => continue,
                            }
                            struck.push(page);
                        }
                        let mut past = Vec::new();
                        prop_assert_eq!(pages.read(FILE, &range, 2, |run| past.extend(run)), expected);
                        prop_assert_eq!(past, struck);
                        open -= expected.there + expected.under_way;
                    }
                    Op::Want(range) => {
                        pages.want(FILE, &range);
                        for page in range { reference.entry(page).and_modify(|page| page.wanted = true); }
                    }
                    Op::Pass(range) => {
                        let mut past = Vec::new();
                        pages.pass(FILE, &range, |run| past.extend(run));
                        let issued = reference.range_mut(range).map(|(&number, page)| {
                            page.passed = true;
                            number
                        });
                        prop_assert_eq!(past, issued.collect::<Vec<_>>());
                    }
                    Op::Evict(range) => {
                        let expected = range.clone().filter(|page| reference.remove(page).is_some()).count();
                        prop_assert_eq!(pages.evict(FILE, &range), expected as u64);
                        open -= expected as u64;
                    }
                    Op::GiveBack(range) => {
                        let mut expected = Unread::default();
                        for page in range.clone() {
                            if let Some(page) = reference.remove(&page) { enter(&mut expected, page); }
                        }
                        prop_assert_eq!(pages.give_back(FILE, &range), expected);
                        open -= expected.wasted + expected.infill + expected.unknown;
                    }
                }
                let mut waiting: Vec<u64> = pages.waiting(0, usize::MAX, usize::MAX).0.into_iter().flat_map(|(_, run)| run).collect();
                waiting.sort_unstable();
                let arrived = reference.iter().filter(|(_, page)| page.arrived && !page.passed).map(|(&page, _)| page);
                prop_assert_eq!(waiting, arrived.collect::<Vec<_>>());
                let waited_for = reference.values().filter(|page| !page.passed).count();
                prop_assert_eq!(pages.len(), waited_for as u64);
                prop_assert_eq!(pages.len() == 0, waited_for == 0);
            }
            let mut expected = Unread::default();
            reference.into_values().for_each(|page| enter(&mut expected, page));
            let rest = pages.rest();
            prop_assert_eq!(rest, expected);
            prop_assert_eq!(open, rest.wasted + rest.infill + rest.unknown, "every page issued is in one column");
        }
    }
}
