//! Which pages of mapped files the program has touched.
//!
//! A read through a mapping makes no call. But a touched page stands in the process's page
//! table, and the table can be looked at from outside; so while mappings exist they are sampled.
//! Within one sample the order is unknown, and a page counts once in a run:
//! afterwards it is in memory for everybody.
//!
//! Invariant: `seen` holds every page ever passed on by [`Touched::fresh`].

use std::collections::HashMap;
use std::time::{Duration, Instant};

use foreread_plan::{Extent, FileId, PAGE, ThreadId};
use foreread_sys::pagemap::PageMap;
use rustc_hash::FxHashMap;

/// The least time between two samples: short against a run, long against a look.
const EVERY: Duration = Duration::from_millis(5);
/// And while they find nothing new, as with one compiler after another, which all map the same files.
const SELDOM: Duration = Duration::from_millis(100);
/// Sampling takes at most this share of the time, as `1 / SHARE`, and while it finds nothing new that one.
const SHARE: u32 = 16;
const SELDOM_SHARE: u32 = 128;
/// Mappings of one process that are looked at.
const MAPPINGS: usize = 4096;
/// Page maps that are kept open: of more processes than that, each is opened for every look, or a build
/// with many at once would take all descriptors.
const KEPT_OPEN: usize = 64;

#[derive(Clone, Copy, Debug)]
struct Mapping {
    addr: u64,
    file: FileId,
    extent: Extent,
    thread: ThreadId,
}

/// The mappings of one process.
#[derive(Debug, Default)]
struct Process {
    list: Vec<Mapping>,
    /// Kept open while something is found in it: else it may be of a program that has ended.
    map: Option<PageMap>,
}

impl Process {
    /// The extents whose pages are present; `None` if the process has ended or is not ours to look at. Its
    /// page map may stay open if `keep`.
    fn look(&mut self, pid: u32, keep: bool) -> Option<Vec<(ThreadId, FileId, Extent)>> {
        let map = match self.map.take() {
            Some(map) => map,
            None => PageMap::open(pid).ok()?,
        };
        let mut found = Vec::new();
        for mapping in &self.list {
            let runs = map.touched(mapping.addr..mapping.addr + mapping.extent.len);
            found.extend(runs.ok()?.into_iter().map(|run| {
                let offset = mapping.extent.offset + run.start.saturating_sub(mapping.addr);
                let extent = Extent::new(offset, run.end - run.start);
                (mapping.thread, mapping.file, extent)
            }));
        }
        self.map = (keep && !found.is_empty()).then_some(map);
        Some(found)
    }
}

/// Mapped ranges, and their pages found touched.
#[derive(Debug, Default)]
pub(super) struct Touched {
    processes: HashMap<u32, Process>,
    seen: FxHashMap<(FileId, u64), u64>,
    due: Option<Instant>,
    /// The time between the last two samples, whatever they cost.
    every: Duration,
    /// Whether any page was fresh since the last sample.
    news: bool,
}

impl Touched {
    /// Whether pages are being touched of late that were not touched before: the next sample is due soon.
    pub(super) fn has_news(&self) -> bool {
        !self.processes.is_empty() && self.every <= EVERY
    }

    /// Process `pid` mapped `extent` of `file` at `addr`.
    pub(super) fn map(
        &mut self,
        pid: u32,
        thread: ThreadId,
        addr: u64,
        file: FileId,
        extent: Extent,
    ) {
        let list = &mut self.processes.entry(pid).or_default().list;
        if !extent.is_empty() && list.len() < MAPPINGS {
            list.push(Mapping {
                addr,
                file,
                extent,
                thread,
            });
        }
    }

    /// Process `pid` unmapped `len` bytes at `addr`. A mapping cut in part is given up whole: the
    /// library has reported its pages.
    pub(super) fn unmap(&mut self, pid: u32, addr: u64, len: u64) {
        if let Some(process) = self.processes.get_mut(&pid) {
            process.list.retain(|mapping| {
                mapping.addr + mapping.extent.len <= addr
                    || addr.saturating_add(len) <= mapping.addr
            });
        }
    }

    /// Process `pid` has ended.
    pub(super) fn exit(&mut self, pid: u32) {
        self.processes.remove(&pid);
    }

    /// If a look is due, the extents of mapped files whose pages are present, by process.
    pub(super) fn sample(&mut self) -> Vec<(ThreadId, FileId, Extent)> {
        let begun = Instant::now();
        if self.processes.is_empty() || self.due.is_some_and(|due| begun < due) {
            return Vec::new();
        }
        let share = if std::mem::take(&mut self.news) {
            self.every = EVERY;
            SHARE
        } else {
            self.every = (self.every * 2).clamp(EVERY, SELDOM);
            SELDOM_SHARE
        };
        let mut found = Vec::new();
        let keep = self.processes.len() <= KEPT_OPEN;
        self.processes.retain(|&pid, process| {
            let looked = process.look(pid, keep);
            let there = looked.is_some();
            found.extend(looked.into_iter().flatten());
            there
        });
        self.due = Some(Instant::now() + self.every.max(begun.elapsed() * share));
        found
    }

    /// The parts of an extent whose pages were not seen before; they are from now on.
    pub(super) fn fresh(&mut self, file: FileId, extent: Extent) -> Vec<Extent> {
        let mut runs: Vec<Extent> = Vec::new();
        let pages = extent.pages();
        let mut page = pages.start;
        while page < pages.end {
            let chunk = page / 64;
            let end = pages.end.min((chunk + 1) * 64);
            let mask = (u64::MAX >> (64 - (end - page))) << (page % 64);
            let seen = self.seen.entry((file, chunk)).or_default();
            let mut left = mask & !*seen;
            *seen |= mask;
            while left != 0 {
                let first = left.trailing_zeros();
                let count = (left >> first).trailing_ones();
                left &= !((u64::MAX >> (64 - count)) << first);
                let (at, len) = (chunk * 64 + u64::from(first), u64::from(count) * PAGE);
                match runs.last_mut() {
                    Some(run) if run.end() == at * PAGE => run.len += len,
                    _ => runs.push(Extent::new(at * PAGE, len)),
                }
            }
            page = end;
        }
        self.news |= !runs.is_empty();
        runs
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_counts_once() {
        let mut touched = Touched::default();
        let file = FileId(0);
        assert_eq!(
            touched.fresh(file, Extent::new(0, 3 * PAGE)),
            [Extent::new(0, 3 * PAGE)]
        );
        assert_eq!(
            touched.fresh(file, Extent::new(PAGE, 4 * PAGE)),
            [Extent::new(3 * PAGE, 2 * PAGE)]
        );
        assert!(touched.fresh(file, Extent::new(0, 5 * PAGE)).is_empty());
    }

    #[test]
    fn pages_of_our_own_mapping_are_found_once_touched() {
        let file = tempfile::tempfile().unwrap();
        file.set_len(8 * PAGE).unwrap();
        // Looked at through the residency map, which is never touched: nothing is present.
        let map = foreread_sys::residency::Residency::new(&file, 8 * PAGE).unwrap();
        assert_eq!(map.len(), 8 * PAGE);
        let mut touched = Touched::default();
        touched.map(
            std::process::id(),
            ThreadId(0),
            0x1000,
            FileId(0),
            Extent::new(0, PAGE),
        );
        assert!(
            touched.sample().is_empty(),
            "the first page is never mapped"
        );
    }

    #[test]
    fn samples_that_find_nothing_new_become_rare() {
        let memory = vec![1u8; 4 * PAGE as usize];
        let mut touched = Touched::default();
        let (pid, file) = (std::process::id(), FileId(0));
        let extent = Extent::new(0, 3 * PAGE);
        touched.map(pid, ThreadId(0), memory.as_ptr() as u64, file, extent);
        let mut pauses = Vec::new();
        for _ in 0..7 {
            touched.due = None;
            for (_, file, extent) in touched.sample() {
                touched.fresh(file, extent);
            }
            pauses.push(touched.every);
            assert_eq!(touched.has_news(), touched.every == EVERY);
        }
        assert_eq!(pauses, [1, 1, 2, 4, 8, 16, 20].map(|times| EVERY * times));
        assert_eq!(touched.every, SELDOM);
        touched.fresh(file, Extent::new(4 * PAGE, PAGE));
        touched.due = None;
        touched.sample();
        assert_eq!(touched.every, EVERY, "there is news");
    }

    #[test]
    fn page_maps_stay_open_only_while_there_are_few() {
        let memory = vec![1u8; 4 * PAGE as usize];
        let mut touched = Touched::default();
        // Processes that are gone, but for this one.
        let own = std::process::id();
        for pid in (0..=KEPT_OPEN as u32).map(|n| u32::MAX - n).chain([own]) {
            let extent = Extent::new(0, PAGE);
            touched.map(pid, ThreadId(0), memory.as_ptr() as u64, FileId(0), extent);
        }
        assert!(!touched.sample().is_empty());
        assert!(touched.processes[&own].map.is_none(), "many");
        assert_eq!(touched.processes.len(), 1, "the others are gone");
        touched.due = None;
        assert!(!touched.sample().is_empty());
        assert!(touched.processes[&own].map.is_some(), "few");
    }

    #[test]
    fn scattered_pages_come_out_as_the_runs_they_are() {
        let mut touched = Touched::default();
        let file = FileId(0);
        for page in [62, 65, 130] {
            touched.fresh(file, Extent::new(page * PAGE, PAGE));
        }
        assert_eq!(
            touched.fresh(file, Extent::new(60 * PAGE, 72 * PAGE)),
            [
                Extent::new(60 * PAGE, 2 * PAGE),
                Extent::new(63 * PAGE, 2 * PAGE),
                Extent::new(66 * PAGE, 64 * PAGE),
                Extent::new(131 * PAGE, PAGE),
            ]
        );
    }

    #[test]
    fn unmapped_ranges_are_not_looked_at() {
        let mut touched = Touched::default();
        for addr in [0x10_000, 0x20_000] {
            touched.map(1, ThreadId(0), addr, FileId(0), Extent::new(0, PAGE));
        }
        touched.unmap(1, 0x20_000, PAGE);
        assert_eq!(touched.processes[&1].list.len(), 1);
        touched.exit(1);
        assert!(touched.processes.is_empty());
    }
}
