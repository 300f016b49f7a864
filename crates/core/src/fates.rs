//! Fates of single pages, for the account and for reports.
//!
//! A report draws the files that the recorded run waited longest for. The pages of a file are a list of runs: from the first page of a
//! run to that of the next, all pages that were read or fetched have one fate. If a file would have more than [`RUNS`] runs,
//! neighbouring pages become one run, with the fate that most of them have.
//!
//! Invariant: at most [`Fates::FILES`] files and about [`RUNS`] runs of each, however large they are.
//!
//! Data flow: pages issued, read and waited for → [`Masks`] → [`Fates`]; pure.

use std::collections::BTreeMap;

use foreread_plan::{FileId, PAGE};
use serde::{Deserialize, Serialize};

use crate::pages::Pages;

/// Runs of a file, or at most twice as many: a picture cannot show more.
const RUNS: usize = 512;

/// Fate of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fate {
    /// In memory before anything was fetched, and read.
    InMemory,
    /// Left to the kernel's own read-ahead.
    Kernel,
    /// Fetched, and in memory when it was read.
    Useful,
    /// Fetched, and waited for all the same.
    Late,
    /// Fetched, and not read.
    Wasted,
    /// Waited for, and not fetched.
    Missed,
    /// Fetched, and nobody knows whether it was read.
    Unknown,
}

impl Fate {
    /// All fates, in their order.
    pub const ALL: [Self; 7] = [
        Self::InMemory,
        Self::Kernel,
        Self::Useful,
        Self::Late,
        Self::Wasted,
        Self::Missed,
        Self::Unknown,
    ];
}

/// Fates of the pages of one file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fates {
    /// The file.
    pub file: FileId,
    /// Bytes of each fate, in the order of [`Fate::ALL`].
    pub bytes: [u64; Fate::ALL.len()],
    /// Runs of pages: the first page, and the fate.
    pub runs: Vec<(u64, Fate)>,
}

/// Pages of one chunk, a bit each.
pub(crate) struct Masks {
    /// Fetched.
    pub(crate) issued: u64,
    /// Read by the program.
    pub(crate) read: u64,
    /// Waited for by the program.
    pub(crate) waited: u64,
    /// In the plan.
    pub(crate) planned: u64,
    /// Left to the kernel's read-ahead.
    pub(crate) left: u64,
    /// True if the program may have read pages of the file unseen.
    pub(crate) is_doubtful: bool,
}

impl Masks {
    /// Bit mask of the pages with this fate. Infill has none.
    pub(crate) fn of(&self, fate: Fate) -> u64 {
        let unread = self.issued & !self.read & self.planned;
        match fate {
            Fate::InMemory => self.read & !self.issued & !self.waited,
            Fate::Kernel => self.waited & !self.issued & self.left,
            Fate::Useful => self.issued & self.read & !self.waited,
            Fate::Late => self.issued & self.waited,
            Fate::Wasted if self.is_doubtful => 0,
            Fate::Wasted => unread,
            Fate::Missed => self.waited & !self.issued & !self.left,
            Fate::Unknown if self.is_doubtful => unread,
            Fate::Unknown => 0,
        }
    }

    /// Pages fetched between planned ones, and not read.
    pub(crate) fn infill(&self) -> u64 {
        self.issued & !self.read & !self.planned
    }
}

impl Fates {
    /// Files, at most: a few more than a report shows, which leaves out some.
    pub(crate) const FILES: usize = 12;

    /// The fates of these chunks of a file.
    pub(crate) fn of(file: FileId, chunks: &BTreeMap<u64, Masks>) -> Self {
        let mut fates = Self {
            file,
            bytes: Fate::ALL.map(|fate| {
                let pages = chunks.values().map(|masks| masks.of(fate).count_ones());
                pages.map(u64::from).sum::<u64>() * PAGE
            }),
            runs: Vec::new(),
        };
        let mut block = 1;
        while !fates.divide(chunks, block) {
            let first = chunks.keys().next().copied().unwrap_or(0);
            let last = chunks.keys().next_back().copied().unwrap_or(0);
            block = ((last - first + 1) * Pages::CHUNK).div_ceil(RUNS as u64);
        }
        fates
    }

    /// Divides the pages into runs: each `block` neighbours have one fate. False if there are too many runs.
    fn divide(&mut self, chunks: &BTreeMap<u64, Masks>, block: u64) -> bool {
        self.runs.clear();
        let mut now = None;
        let mut counts = [0u64; Fate::ALL.len()];
        for (chunk, masks) in chunks {
            let of = Fate::ALL.map(|fate| masks.of(fate));
            let mut any = of.iter().fold(0, |all, one| all | one);
            while any != 0 {
                let bit = any.trailing_zeros();
                any &= any - 1;
                let here = (chunk * Pages::CHUNK + u64::from(bit)) / block;
                if now != Some(here) {
                    self.end(now, block, &mut counts);
                    now = Some(here);
                }
                if let Some(fate) = of.iter().position(|mask| mask >> bit & 1 == 1) {
                    counts[fate] += 1;
                }
            }
            if block == 1 && self.runs.len() > RUNS {
                return false;
            }
        }
        self.end(now, block, &mut counts);
        true
    }

    /// A block has ended.
    fn end(&mut self, block: Option<u64>, pages: u64, counts: &mut [u64; Fate::ALL.len()]) {
        let most = counts.iter().copied().max().unwrap_or(0);
        let fate = counts.iter().position(|count| *count == most);
        if let (Some(block), Some(fate)) = (block, fate.map(|place| Fate::ALL[place]))
            && self.runs.last().is_none_or(|(_, last)| *last != fate)
        {
            self.runs.push((block * pages, fate));
        }
        *counts = Default::default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn masks(issued: u64, read: u64, waited: u64) -> Masks {
        Masks {
            issued,
            read,
            waited,
            planned: u64::MAX,
            left: 0,
            is_doubtful: false,
        }
    }

    #[test]
    fn each_page_has_one_fate_and_runs_of_them_are_one() {
        let mut first = masks(0b0011_1111, 0b1101_0111, 0b1000_0100);
        first.planned = 0b1101_1111;
        let chunks = BTreeMap::from([(2, first), (9, masks(0b11, 0b11, 0))]);
        let fates = Fates::of(FileId(7), &chunks);
        let runs = [
            (128, Fate::Useful),
            (130, Fate::Late),
            (131, Fate::Wasted),
            (132, Fate::Useful),
            (134, Fate::InMemory),
            (135, Fate::Missed),
            (576, Fate::Useful),
        ];
        assert_eq!(fates.runs, runs);
        assert_eq!(fates.bytes.map(|all| all / PAGE), [1, 0, 5, 1, 1, 1, 0]);
    }

    #[test]
    fn what_is_left_to_the_kernel_is_not_missed_and_what_nobody_saw_is_not_wasted() {
        let mut one = masks(0b1, 0b10, 0b10);
        (one.left, one.is_doubtful) = (0b10, true);
        let fates = Fates::of(FileId(0), &BTreeMap::from([(0, one)]));
        assert_eq!(fates.runs, [(0, Fate::Unknown), (1, Fate::Kernel)]);
    }

    #[test]
    fn however_scattered_the_fates_are_there_are_not_many_runs() {
        // One of every three pages is late.
        let late = 0x9249_2492_4924_9249;
        let chunks = (0..1000).map(|chunk| (chunk * 1000, masks(u64::MAX, u64::MAX, late)));
        let fates = Fates::of(FileId(0), &chunks.collect());
        assert_eq!(fates.runs, [(0, Fate::Useful)]);
        let halves = (0..4000).map(|chunk| {
            let waited = if chunk % 2 == 0 { u64::MAX } else { 0 };
            (chunk, masks(u64::MAX, u64::MAX, waited))
        });
        let fates = Fates::of(FileId(0), &halves.collect());
        assert!(fates.runs.len() <= 2 * RUNS, "{}", fates.runs.len());
        assert_eq!(fates.bytes.iter().sum::<u64>(), 4000 * 64 * PAGE);
    }
}
