//! The literal trace of an earlier run as foreknowledge.
//!
//! Accesses are disclosed in recorded order, made ready for prefetching on the way:
//! consecutive accesses to the same pages are one disclosure; a file's sequential stream is
//! marked as such, small skips included, once it has run on for 256 KiB, because from there the
//! kernel's read-ahead does at least as well; pages found touched in a mapping are disclosed one by
//! one, because the next sample will group them differently.
//!
//! When program and trace part, [`Replay::resync`] looks for the recent accesses further on
//! in the trace, then from its start.

use std::collections::{HashSet, VecDeque};
use std::ops::Range;

use foreread_plan::{Access, Expected, FileId, Kind, Name, Odds, Pattern};

use crate::streams::Streams;
use crate::{Nature, Outlook, Source};

/// Trace accesses a resynchronisation looks at before it gives up; bounds it to well under a second.
const SEARCH: usize = 2_000_000;
/// Recorded accesses that are compared with the recent ones at a time.
const WINDOW: usize = 32;
/// Matching places that a resynchronisation needs at least.
const ENOUGH: usize = 3;
/// Disclosures searched for a sample: less work than reaching another part of a record.
const AMONG: usize = 512;
/// Pages that are gone through for each of them at most: a program's own objects were seen to have some ten in a run.
const PAGES_EACH: usize = 16;

/// Accesses that wait to be disclosed while names are, and names while accesses are: 16 bytes and 48 bytes each. A program that
/// reads more than so many times between two names finds the second by itself.
const WAITING: usize = 1 << 14;

/// The accesses of an earlier run, in order, from the start as often as needed.
pub trait Trace: Send {
    /// The next access; `None` at the end, also where the record is damaged from here on.
    fn next(&mut self) -> Option<Access>;
    /// Start over.
    fn rewind(&mut self);
    /// Leave out what comes before this share of the trace (0 to 1), as far as that is less work than to go through it.
    fn skip_to(&mut self, _share: f64) {}
    /// How many accesses it is, if that is known.
    fn accesses(&self) -> Option<u64> {
        None
    }
    /// Look whether all of it is sound. Asked at the start, where it is left.
    fn check(&mut self) {}
}

/// Source `replay`.
#[derive(Debug)]
pub struct Replay<T> {
    trace: T,
    skip: HashSet<FileId>,
    streams: Streams,
    last: Option<(FileId, Range<u64>)>,
    /// Read from the trace, and not disclosed yet: where names are taken further ahead than accesses, these wait, and the other
    /// way round.
    pending: VecDeque<Expected>,
    named: VecDeque<Name>,
    /// Accesses disclosed since the place in the trace was last looked for.
    disclosed: u64,
    /// The last name that was read from the trace.
    last_named: Option<(FileId, Kind)>,
}

impl<T: Trace> Replay<T> {
    /// Replay `trace`, except accesses to the files in `skip`: those the run wrote itself.
    pub fn new(trace: T, skip: HashSet<FileId>) -> Self {
        Self {
            trace,
            skip,
            streams: Streams::default(),
            last: None,
            pending: VecDeque::new(),
            named: VecDeque::new(),
            disclosed: 0,
            last_named: None,
        }
    }

    /// Drop what is known of the place in the trace.
    fn forget(&mut self) {
        self.pending.clear();
        self.streams.clear();
        self.last = None;
        self.named.clear();
        self.disclosed = 0;
        self.last_named = None;
    }

    /// The next access that matters.
    fn advance(&mut self) -> Option<Access> {
        loop {
            let access = self.trace.next()?;
            if !self.skip.contains(&access.file) {
                return Some(access);
            }
        }
    }

    fn prepare(&mut self, access: &Access) {
        let thread = access.thread;
        let file = access.file;
        if access.kind.names() {
            let name = (file, access.kind);
            if self.last_named.replace(name) != Some(name) {
                self.named.push_back(Name {
                    file,
                    kind: access.kind,
                    before: self.disclosed + self.pending.len() as u64,
                });
            }
            return;
        }
        if !access.kind.reads() {
            self.pending.push_back(Expected {
                odds: Odds::SURE,
                file,
                pages: 0..0,
                thread,
                pattern: Pattern::Scattered,
            });
            return;
        }
        let pages = access.extent.pages();
        if pages.is_empty() {
            return;
        }
        if access.kind == Kind::Touch {
            self.pending.extend(pages.map(|page| Expected {
                odds: Odds::SURE,
                file,
                pages: page..page + 1,
                thread,
                pattern: Pattern::Loose,
            }));
            return;
        }
        let pattern = self.streams.runs(thread, file, access.extent).pattern();
        let repeat = self.last.as_ref().is_some_and(|(last, seen)| {
            *last == file && seen.start <= pages.start && pages.end <= seen.end
        });
        if repeat {
            return;
        }
        self.last = Some((file, pages.clone()));
        self.pending.push_back(Expected {
            odds: Odds::SURE,
            file,
            pages,
            thread,
            pattern,
        });
    }

    /// Disclose accesses, as long as fewer than so many names wait.
    fn take(&mut self, room: usize, names: usize, out: &mut Vec<Expected>) -> Outlook {
        for _ in 0..room {
            while self.pending.is_empty() {
                if self.named.len() >= names {
                    return Outlook::Later;
                }
                let Some(access) = self.advance() else {
                    return Outlook::End;
                };
                self.prepare(&access);
            }
            out.extend(self.pending.pop_front());
            self.disclosed += 1;
        }
        Outlook::More
    }

    /// The next [`AMONG`] extents, fewer at the end. Pages of a mapping that were touched together are one: a program's own
    /// objects have thousands of such pages, which would hide what else it reads.
    fn extents(&mut self) -> Vec<Expected> {
        let mut seen: Vec<Expected> = Vec::with_capacity(AMONG);
        let mut pages = Vec::with_capacity(AMONG);
        for _ in 0..PAGES_EACH {
            self.take(AMONG - seen.len(), AMONG, &mut pages);
            for one in pages.drain(..).filter(|one| !one.pages.is_empty()) {
                let goes_on = |last: &&mut Expected| {
                    one.pattern == Pattern::Loose
                        && last.pattern == Pattern::Loose
                        && (last.file, last.pages.end) == (one.file, one.pages.start)
                };
                if let Some(last) = seen.last_mut().filter(goes_on) {
                    last.pages.end = one.pages.end;
                } else {
                    seen.push(one);
                }
            }
        }
        seen
    }

    /// Go on in the trace to just after the first window in which most of `wanted` occur, among
    /// samples or among all the rest.
    fn seek(&mut self, wanted: &HashSet<(FileId, u64)>, samples: bool) -> bool {
        let enough = wanted.len().div_ceil(2).max(ENOUGH);
        let mut window: VecDeque<(FileId, u64)> = VecDeque::with_capacity(WINDOW + 1);
        for _ in 0..SEARCH {
            let Some(access) = self.advance() else {
                return false;
            };
            if !access.kind.reads() || (access.kind == Kind::Touch) != samples {
                continue;
            }
            window.push_back((access.file, access.extent.pages().start));
            if window.len() > WINDOW {
                window.pop_front();
            }
            if wanted.contains(window.back().expect("just pushed")) {
                let found: HashSet<_> = window.iter().filter(|key| wanted.contains(key)).collect();
                if found.len() >= enough {
                    return true;
                }
            }
        }
        false
    }
}

impl<T: Trace> Source for Replay<T> {
    fn nature(&self) -> Nature {
        Nature::Literal
    }

    fn disclose(&mut self, room: usize, out: &mut Vec<Expected>) -> Outlook {
        self.take(room, WAITING, out)
    }

    fn names(&mut self, room: usize, out: &mut Vec<Name>) -> Outlook {
        for _ in 0..room {
            while self.named.is_empty() {
                if self.pending.len() >= WAITING {
                    return Outlook::Later;
                }
                let Some(access) = self.advance() else {
                    return Outlook::End;
                };
                self.prepare(&access);
            }
            out.extend(self.named.pop_front());
        }
        Outlook::More
    }

    fn rewind(&mut self) {
        self.forget();
        self.trace.rewind();
    }

    fn sample(&mut self, share: f64, most: usize, out: &mut Vec<Expected>) {
        self.forget();
        self.trace.skip_to(share);
        let seen = self.extents();
        pick(seen.into(), most, out);
    }

    fn sample_names(&mut self, most: usize, out: &mut Vec<Name>) {
        pick(std::mem::take(&mut self.named), most, out);
    }

    fn size(&self) -> Option<u64> {
        self.trace.accesses()
    }

    fn check(&mut self) {
        self.trace.check();
    }

    fn resync(&mut self, recent: &[Access]) -> bool {
        self.forget();
        // Samples find pages of a program's libraries at any time, at its end above all: they tell the
        // place only of a program that does nothing but touch mapped pages.
        let mut samples = false;
        let mut wanted = starts(recent, samples);
        if wanted.len() < ENOUGH {
            samples = true;
            wanted = starts(recent, samples);
        }
        if wanted.len() < ENOUGH {
            return false;
        }
        if self.seek(&wanted, samples) {
            return true;
        }
        self.trace.rewind();
        self.seek(&wanted, samples)
    }
}

/// Takes so many, in order, but in no rhythm, or a sample could miss what the plan comes to in that rhythm.
fn pick<T>(seen: VecDeque<T>, most: usize, out: &mut Vec<T>) {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let among = seen.len() as u64;
    let mut left = among.min(most as u64);
    for (n, one) in seen.into_iter().enumerate() {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        if (state >> 33) % (among - n as u64) < left {
            left -= 1;
            out.push(one);
        }
    }
}

/// Where reads begin: those found in samples, or all the rest.
fn starts(accesses: &[Access], samples: bool) -> HashSet<(FileId, u64)> {
    accesses
        .iter()
        .filter(|access| access.kind.reads() && (access.kind == Kind::Touch) == samples)
        .map(|access| (access.file, access.extent.pages().start))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::streams::STREAM_AFTER;
    use foreread_plan::{Extent, PAGE, ThreadId};
    use proptest::prelude::*;

    struct List(Vec<Access>, usize);

    impl Trace for List {
        fn next(&mut self) -> Option<Access> {
            self.1 += 1;
            self.0.get(self.1 - 1).copied()
        }
        fn rewind(&mut self) {
            self.1 = 0;
        }
    }

    fn access(file: u32, offset: u64, len: u64) -> Access {
        Access {
            file: FileId(file),
            extent: Extent::new(offset, len),
            thread: ThreadId(0),
            kind: Kind::Pread,
            start: 0,
            took: 0,
        }
    }

    fn replay(accesses: Vec<Access>) -> Replay<List> {
        Replay::new(List(accesses, 0), HashSet::new())
    }

    fn all(source: &mut impl Source) -> Vec<Expected> {
        let mut out = Vec::new();
        source.disclose(usize::MAX, &mut out);
        out
    }

    #[test]
    fn small_reads_of_one_page_are_one_disclosure() {
        let reads = (0..80).map(|n| access(1, n * 100, 100)).collect();
        let disclosed = all(&mut replay(reads));
        let pages: Vec<_> = disclosed.into_iter().map(|d| d.pages).collect();
        assert_eq!(
            pages,
            [0..1, 0..2],
            "page 0, then the read across; the rest is in it"
        );
    }

    #[test]
    fn a_sample_is_taken_in_no_rhythm() {
        // Every fourth read is of the same page.
        let reads = (0..40_000).map(|n| {
            let page = if n % 4 == 0 { 0 } else { n * 7919 % 40_000 };
            access(1, page * 3 * PAGE, PAGE)
        });
        let mut source = replay(reads.collect());
        let mut sample = Vec::new();
        source.sample(0.0, 48, &mut sample);
        assert_eq!(sample.len(), 48);
        let root = sample.iter().filter(|one| one.pages.start == 0).count();
        assert!((1..30).contains(&root), "{root} of 48");
        let mut more = Vec::new();
        source.sample(0.5, 48, &mut more);
        assert!(more.len() == 48 && more != sample, "further on");
        // Of less than that, all, in order.
        let mut few = replay((0..10).map(|n| access(1, n * 3 * PAGE, PAGE)).collect());
        sample.clear();
        few.sample(0.0, 48, &mut sample);
        assert!(sample.is_sorted_by_key(|one| one.pages.start) && sample.len() == 10);
    }

    #[test]
    fn a_programs_own_pages_do_not_hide_what_it_reads_from_a_sample() {
        // Twenty runs of touched pages, and then as many reads as pages.
        let touched = (0..20).map(|n| Access {
            kind: Kind::Touch,
            ..access(2, n * 64 * PAGE, 50 * PAGE)
        });
        let reads = (0..1000).map(|n| access(1, n * 7919 % 1000 * 3 * PAGE, PAGE));
        let mut source = replay(touched.chain(reads).collect());
        let mut sample = Vec::new();
        source.sample(0.0, 48, &mut sample);
        let read = sample.iter().filter(|one| one.file == FileId(1)).count();
        assert!(sample.len() == 48 && read > 36, "{read} of 48");
    }

    #[test]
    fn a_stream_is_left_to_the_kernel_after_its_beginning() {
        let reads = (0..256).map(|n| access(1, n * PAGE, PAGE)).collect();
        let disclosed = all(&mut replay(reads));
        let first = disclosed
            .iter()
            .position(|d| d.pattern != Pattern::Scattered)
            .unwrap();
        assert_eq!(first as u64 * PAGE, STREAM_AFTER);
        assert!(
            disclosed[first..]
                .iter()
                .all(|d| d.pattern == Pattern::Sequential)
        );
    }

    #[test]
    fn what_leaves_a_page_out_between_reads_is_no_stream() {
        let reads = (0..256).map(|n| access(1, n * 2 * PAGE, PAGE)).collect();
        let disclosed = all(&mut replay(reads));
        assert!(disclosed.iter().all(|d| d.pattern == Pattern::Scattered));
        // A part of each page.
        let reads = (0..256).map(|n| access(1, n * PAGE + 8, 100)).collect();
        let last = all(&mut replay(reads)).pop().unwrap();
        assert_eq!(last.pattern, Pattern::Sequential);
    }

    #[test]
    fn one_large_read_is_not_a_stream_by_itself() {
        let reads = vec![access(1, 0, 1 << 20), access(1, 1 << 30, 1 << 20)];
        assert!(
            all(&mut replay(reads))
                .iter()
                .all(|d| d.pattern == Pattern::Scattered)
        );
    }

    #[test]
    fn backward_and_widely_strided_reads_are_never_a_stream() {
        let backward = (0..256).rev().map(|n| access(1, n * PAGE, PAGE));
        let strided = (0..256).map(|n| access(2, n * 5 * PAGE, PAGE));
        let disclosed = all(&mut replay(backward.chain(strided).collect()));
        assert!(disclosed.iter().all(|d| d.pattern == Pattern::Scattered));
    }

    #[test]
    fn files_the_run_wrote_itself_are_not_disclosed() {
        let mut source = Replay::new(
            List(vec![access(1, 0, PAGE), access(2, 0, PAGE)], 0),
            HashSet::from([FileId(1)]),
        );
        let files: Vec<_> = all(&mut source).into_iter().map(|d| d.file).collect();
        assert_eq!(files, [FileId(2)]);
    }

    #[test]
    fn after_a_rewind_the_same_is_disclosed_again() {
        let reads = (0..256).map(|n| access(1, n * PAGE, PAGE)).collect();
        let mut source = replay(reads);
        let first = all(&mut source);
        source.rewind();
        assert_eq!(all(&mut source), first);
    }

    #[test]
    fn resync_finds_the_place_further_on_and_goes_on_from_there() {
        let scattered = |n: u64| access(1, (n * 7919 % 100_003) * PAGE, PAGE);
        let mut source = replay((0..5000).map(scattered).collect());
        let mut out = Vec::new();
        source.disclose(10, &mut out);
        let recent: Vec<_> = (3000..3016).map(scattered).collect();
        assert!(source.resync(&recent));
        out.clear();
        source.disclose(1, &mut out);
        let at = (3000..3020)
            .find(|&n| scattered(n).extent.pages() == out[0].pages)
            .expect("goes on near the place found");
        assert!((3006..=3016).contains(&at), "{at}");
    }

    #[test]
    fn resync_goes_by_reads_and_not_by_what_a_sample_found_at_the_end() {
        let scattered = |n: u64| access(1, (n * 7919 % 100_003) * PAGE, PAGE);
        let touched = |n: u64| Access {
            kind: Kind::Touch,
            ..access(2, n * PAGE, PAGE)
        };
        let trace = (0..2000).map(scattered).chain((0..100).map(touched));
        let mut source = replay(trace.collect());
        let reads = (500..508).map(scattered);
        let recent: Vec<_> = (0..16).map(touched).chain(reads).collect();
        assert!(source.resync(&recent));
        let mut out = Vec::new();
        source.disclose(1, &mut out);
        assert!(
            (500..512).any(|n| scattered(n).extent.pages() == out[0].pages),
            "{out:?}"
        );
    }

    #[test]
    fn resync_also_looks_back_and_says_so_when_it_finds_nothing() {
        let scattered = |n: u64| access(1, (n * 7919 % 100_003) * PAGE, PAGE);
        let mut source = replay((0..2000).map(scattered).collect());
        let mut out = Vec::new();
        source.disclose(1500, &mut out);
        let earlier: Vec<_> = (100..116).map(scattered).collect();
        assert!(source.resync(&earlier));
        let foreign: Vec<_> = (0..16).map(|n| access(9, n * PAGE, PAGE)).collect();
        assert!(!source.resync(&foreign));
    }

    proptest! {
        /// However the room is cut up, the same is disclosed, and every page read is in it.
        #[test]
        fn disclosure_covers_every_page_whatever_the_room(
            reads in proptest::collection::vec((0u32..4, 0u64..200_000, 1u64..20_000), 0..100),
            room in 1usize..10,
        ) {
            let accesses: Vec<_> = reads.iter().map(|&(f, o, l)| access(f, o, l)).collect();
            let whole = all(&mut replay(accesses.clone()));
            let mut source = replay(accesses.clone());
            let mut pieces = Vec::new();
            loop {
                let before = pieces.len();
                source.disclose(room, &mut pieces);
                if pieces.len() == before { break; }
            }
            prop_assert_eq!(&whole, &pieces);
            for access in accesses {
                for page in access.extent.pages() {
                    prop_assert!(whole.iter().any(|d| d.file == access.file && d.pages.contains(&page)));
                }
            }
        }
    }
}
