//! Finds the pages of mapped files that the program has touched.
//!
//! A read through a mapping makes no system call. But a touched page is in the process's page table, and other processes can read the table
//! and the list of mappings. Each reporting process is therefore sampled. The order within a sample is unknown. A page counts once per run:
//! after its first touch it is in memory for all processes.
//!
//! A process is trusted with its number alone: everything else comes from the kernel's list of its mappings.
//!
//! Invariant: `seen` holds every page ever passed on by [`Touched::fresh`].

use std::collections::HashMap;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use foreread_plan::{Extent, FileId, PAGE, ThreadId};
use foreread_sys::pagemap::PageMap;
use rustc_hash::{FxHashMap, FxHashSet};

/// The least time between two samples: short against a run, long against a look. A look at a Python program takes 40 µs for its list
/// of mappings (21 KB), and 3 µs for 512 pages.
const EVERY: Duration = Duration::from_millis(5);
/// And while they find nothing new, as with one compiler after another, which all map the same files: five doublings of the pause,
/// and a look at such a program costs a two-thousandth of the time.
const SELDOM: Duration = Duration::from_millis(100);
/// Sampling takes at most this share of the time, as `1 / SHARE`, and while it finds nothing new that one.
const SHARE: u32 = 16;
const SELDOM_SHARE: u32 = 128;
/// Number of mappings of a process that are sampled.
const MAPPINGS: usize = 4096;
/// Number of processes that are sampled at the same time.
const PROCESSES: usize = 4096;
/// Number of page maps kept open. Those of further processes are opened for each sample: a build with many processes would otherwise use up
/// all descriptors.
const KEPT_OPEN: usize = 64;

/// Part of a file, mapped by a process.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Mapping {
    /// First address.
    pub(super) addr: u64,
    /// The mapped part of the file, which may pass the file's end.
    pub(super) extent: Extent,
    /// The file's path, as the kernel knows it.
    pub(super) path: PathBuf,
}

/// A sampled process.
#[derive(Debug)]
struct Process {
    thread: ThreadId,
    /// Kept open while something is found in it: else it may be of a program that has ended.
    map: Option<PageMap>,
    /// The mappings reported.
    known: FxHashSet<(u64, u64)>,
}

/// A sample: one process's mappings and their touched pages.
#[derive(Debug)]
pub(super) struct Sample {
    pub(super) thread: ThreadId,
    /// Each mapping, true if it is new, and the touched parts of the file.
    pub(super) mappings: Vec<(Mapping, bool, Vec<Extent>)>,
}

impl Process {
    /// The mappings and the present pages; `None` if the process has ended or may not be examined. With `keep` its page map stays open.
    fn look(&mut self, pid: u32, keep: bool) -> Option<Sample> {
        let list = fs::read(format!("/proc/{pid}/maps")).ok()?;
        let map = match self.map.take() {
            Some(map) => map,
            None => PageMap::open(pid).ok()?,
        };
        let mut mappings = Vec::new();
        let mut is_touched = false;
        for mapping in mappings_in(&list).take(MAPPINGS) {
            let Extent { offset, len } = mapping.extent;
            let runs = map.touched(mapping.addr..mapping.addr + len).ok()?;
            let touched: Vec<_> = runs
                .into_iter()
                .map(|run| {
                    let offset = offset + run.start.saturating_sub(mapping.addr);
                    Extent::new(offset, run.end - run.start)
                })
                .collect();
            is_touched |= !touched.is_empty();
            if self.known.len() >= MAPPINGS {
                self.known.clear();
            }
            let is_new = self.known.insert((mapping.addr, offset));
            mappings.push((mapping, is_new, touched));
        }
        self.map = (keep && is_touched).then_some(map);
        let thread = self.thread;
        Some(Sample { thread, mappings })
    }
}

/// The mapped files in a process's list of mappings (proc_pid_maps(5)), but those that have been deleted.
fn mappings_in(list: &[u8]) -> impl Iterator<Item = Mapping> {
    list.split(|&byte| byte == b'\n').filter_map(mapping)
}

fn mapping(line: &[u8]) -> Option<Mapping> {
    // address range, permissions, offset, device, inode, and the path after some spaces.
    let mut fields = line.splitn(6, |&byte| byte == b' ');
    let hex = |text: &[u8]| u64::from_str_radix(std::str::from_utf8(text).ok()?, 16).ok();
    let range = fields.next()?;
    let dash = range.iter().position(|&byte| byte == b'-')?;
    let (from, to) = (hex(&range[..dash])?, hex(&range[dash + 1..])?);
    let may_read = fields.next()?.first() == Some(&b'r');
    let offset = hex(fields.next()?)?;
    let path = fields.nth(2)?.trim_ascii_start();
    let is_file = path.starts_with(b"/")
        && !path.starts_with(b"/dev/")
        && !path.starts_with(b"/memfd:")
        && !path.ends_with(b" (deleted)");
    let len = to.checked_sub(from)?;
    offset.checked_add(len)?;
    (may_read && is_file).then(|| Mapping {
        addr: from,
        extent: Extent::new(offset, len),
        path: Path::new(std::ffi::OsStr::from_bytes(path)).to_owned(),
    })
}

/// The processes, and the pages seen.
#[derive(Debug, Default)]
pub(super) struct Touched {
    processes: HashMap<u32, Process>,
    seen: FxHashMap<(FileId, u64), u64>,
    due: Option<Instant>,
    /// The time between the last two samples, whatever they cost.
    every: Duration,
    /// True if the last sample had fresh pages, or if the next may have.
    news: bool,
}

impl Touched {
    /// True if the program has recently touched new pages: the next sample is due soon.
    pub(super) fn has_news(&self) -> bool {
        !self.processes.is_empty() && self.every <= EVERY
    }

    /// Adds process `pid`, whose first reporting thread is `thread`.
    pub(super) fn begins(&mut self, pid: u32, thread: ThreadId) {
        if self.processes.len() < PROCESSES {
            self.processes.entry(pid).or_insert(Process {
                thread,
                map: None,
                known: FxHashSet::default(),
            });
        }
    }

    /// Process `pid` has ended, or has become another program.
    pub(super) fn exit(&mut self, pid: u32) {
        self.processes.remove(&pid);
    }

    /// A program has begun, or has opened a file, that was not seen before: it may be mapped now.
    pub(super) fn expects_news(&mut self) {
        self.news = true;
        if self.every > EVERY {
            self.due = None;
        }
    }

    /// The touched pages of mappings, by process, if a look is due.
    pub(super) fn sample(&mut self) -> Vec<Sample> {
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
        let mut samples = Vec::new();
        let keep = self.processes.len() <= KEPT_OPEN;
        self.processes.retain(|&pid, process| {
            let looked = process.look(pid, keep);
            let there = looked.is_some();
            samples.extend(looked);
            there
        });
        self.due = Some(Instant::now() + self.every.max(begun.elapsed() * share));
        samples
    }

    /// The pages of an extent that were not seen before. From now on they count as seen.
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
    fn mapped_files_are_told_from_all_else_that_is_mapped() {
        let list = b"\
55d0c8a00000-55d0c8a02000 r--p 00001000 fe:01 1234                       /usr/bin/a program\n\
55d0c8a02000-55d0c8a03000 ---p 00002000 fe:01 1234                       /usr/bin/a program\n\
7f0000000000-7f0000001000 rw-p 00000000 00:00 0 \n\
7f0000001000-7f0000002000 rw-s 00000000 00:01 5                          /memfd:x (deleted)\n\
7f0000002000-7f0000003000 r--p 00000000 fe:01 6                          /tmp/gone (deleted)\n\
7f0000003000-7f0000004000 r--s 00000000 00:05 7                          /dev/zero\n\
7ffd00000000-7ffd00021000 rw-p 00000000 00:00 0                          [stack]\n\
nonsense\n\
2-1 r--p 0 0:0 1 /backward\n\
0-2000 r--p fffffffffffff000 0:0 1 /beyond\n";
        let found: Vec<_> = mappings_in(list).collect();
        let expected = Mapping {
            addr: 0x55d0_c8a0_0000,
            extent: Extent::new(0x1000, 0x2000),
            path: "/usr/bin/a program".into(),
        };
        assert_eq!(found, [expected]);
    }

    /// Touched parts of the file at `path`, by a sample of this process.
    fn sampled(touched: &mut Touched, path: &Path) -> Vec<(bool, Vec<Extent>)> {
        touched.due = None;
        let samples = touched.sample();
        let mappings = samples.into_iter().flat_map(|sample| sample.mappings);
        mappings
            .filter(|(mapping, ..)| mapping.path == path)
            .map(|(_, is_new, touched)| (is_new, touched))
            .collect()
    }

    #[test]
    fn touched_pages_of_our_own_program_are_found_and_its_mappings_told_once() {
        let exe = std::env::current_exe().unwrap().canonicalize().unwrap();
        let mut touched = Touched::default();
        assert!(sampled(&mut touched, &exe).is_empty(), "nobody is there");
        touched.begins(std::process::id(), ThreadId(0));
        let found = sampled(&mut touched, &exe);
        assert!(found.iter().any(|(_, touched)| !touched.is_empty()));
        assert!(found.iter().all(|(is_new, _)| *is_new));
        let again = sampled(&mut touched, &exe);
        assert!(again.iter().all(|(is_new, _)| !*is_new));
        touched.exit(std::process::id());
        assert!(sampled(&mut touched, &exe).is_empty(), "it has ended");
    }

    #[test]
    fn samples_that_find_nothing_new_become_rare() {
        let mut touched = Touched::default();
        touched.begins(std::process::id(), ThreadId(0));
        let mut pauses = Vec::new();
        touched.fresh(FileId(0), Extent::new(0, PAGE));
        for _ in 0..7 {
            touched.due = None;
            touched.sample();
            pauses.push(touched.every);
            assert_eq!(touched.has_news(), touched.every == EVERY);
        }
        assert_eq!(pauses, [1, 2, 4, 8, 16, 20, 20].map(|times| EVERY * times));
        assert_eq!(touched.every, SELDOM);
        touched.fresh(FileId(0), Extent::new(4 * PAGE, PAGE));
        touched.due = None;
        touched.sample();
        assert_eq!(touched.every, EVERY, "there is news");
        for _ in 0..5 {
            touched.due = None;
            touched.sample();
        }
        touched.expects_news();
        touched.sample();
        assert_eq!(touched.every, EVERY, "there may be news");
    }

    #[test]
    fn page_maps_stay_open_only_while_there_are_few() {
        let mut touched = Touched::default();
        // Processes that are gone, but for this one.
        let own = std::process::id();
        for pid in (0..=KEPT_OPEN as u32).map(|n| u32::MAX - n).chain([own]) {
            touched.begins(pid, ThreadId(0));
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
}
