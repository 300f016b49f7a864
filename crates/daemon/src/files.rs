//! The files that may be fetched: identity, pages that programs fetched, users.
//!
//! Of a predicted file the daemon fetches the pages that programs were seen to fetch. A small file, and one with most of its pages seen, is
//! fetched whole. Some observers do not report pages: then small files are fetched whole, and of large ones the beginning.
//!
//! A file that was requested counts as in memory for a while, because looking again costs more than an event. When a program
//! fetches a page that was fetched before, memory has lost pages, and an *epoch* ends: no file counts as in memory any more.
//!
//! Invariant: as many files as the limit, each with at most [`RANGES`] ranges.

use std::path::Path;

use foreread_observe::Node;
use foreread_plan::{FileMeta, PAGE};
use foreread_sources::files::Symbol;
use rustc_hash::FxHashMap;

/// First pages of a file that count as read when it is opened: 128 KiB, the kernel's own read-ahead.
pub(crate) const AT_OPEN: u32 = 32;
/// Ranges of pages kept of a file; those with the smallest gap between them are joined when there are more.
pub(crate) const RANGES: usize = 24;
/// Pages between two ranges that are fetched along: the kernel's read-ahead of 128 KiB would span as many.
const GAP: u32 = 32;
/// A file of at most this many bytes is fetched whole: one request that no kernel cuts.
const SMALL: u64 = 128 << 10;
/// The most that is fetched of a file of which nothing is known but its size.
const UNKNOWN: u64 = 256 << 10;
/// The most that is fetched of any file, in pages (64 MiB): a compiler's largest program has 40 MiB.
const MOST: u64 = (64 << 20) / PAGE;
/// Time for which a requested file is assumed to be in memory, in ns.
const FRESH: u64 = 20_000_000_000;
/// Time within which the engine has begun with a request, in ns: it is woken at once, and may wait for a processor.
const BEGINS: u64 = 50_000_000;
/// The shortest epoch in the long run, in ns. A failed request looks like one with evicted pages; requesting 256 predicted files again
/// twice a second takes 0.5 % of a core.
const EPOCH: u64 = 500_000_000;
/// Lead that epochs may have over that, in ns. Memory is not emptied at one moment: files that were requested meanwhile are evicted a
/// little later. With 0, 4 of 20 cold compiles waited 0.5 to 1 s longer.
const BURST: u64 = 3 * EPOCH;
/// Users remembered per file, who may ask for its predictions.
pub(crate) const USERS: usize = 4;

/// A range of pages: the first and the one after the last.
pub(crate) type Pages = (u32, u32);

/// A file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct FileFacts {
    pub(crate) device: u64,
    pub(crate) inode: u64,
    pub(crate) size: u64,
    /// Pages that programs have fetched, in order, disjoint.
    pub(crate) pages: Vec<Pages>,
    /// Users who have opened it.
    pub(crate) users: Vec<u32>,
    /// When it was asked for last, and in which epoch.
    pub(crate) asked: Option<(u64, u64)>,
    /// Pages that programs have fetched in the epoch of this number.
    pub(crate) fetched: (u64, Vec<Pages>),
}

impl FileFacts {
    /// The pages to fetch.
    pub(crate) fn plan(&self) -> Vec<Pages> {
        let whole = self.size.div_ceil(PAGE).min(MOST) as u32;
        let known: u64 = self
            .pages
            .iter()
            .map(|(from, to)| u64::from(to - from))
            .sum();
        let is_most = known * 4 >= u64::from(whole) * 3;
        match () {
            _ if whole == 0 => Vec::new(),
            _ if self.size <= SMALL => vec![(0, whole)],
            _ if is_most => vec![(0, whole)],
            _ if self.pages.is_empty() => vec![(0, whole.min((UNKNOWN / PAGE) as u32))],
            _ => {
                let within = self.pages.iter().map(|&(from, to)| (from, to.min(whole)));
                within.filter(|(from, to)| from < to).collect()
            }
        }
    }

    /// True if all planned pages count as read when the file is opened.
    pub(crate) fn is_read_at_open(&self) -> bool {
        let plan = self.plan();
        let pages = plan.iter().map(|(from, to)| to - from);
        pages.sum::<u32>() <= AT_OPEN
    }

    /// Notes pages that a program fetched in this epoch. True if some of them were fetched in it before.
    fn add(&mut self, from: u32, to: u32, epoch: u64) -> bool {
        if self.fetched.0 != epoch {
            self.fetched = (epoch, Vec::new());
        }
        let of_epoch = &mut self.fetched.1;
        let was_fetched = of_epoch
            .iter()
            .any(|&(first, end)| from < end && first < to);
        let count = of_epoch.len();
        match of_epoch.last_mut() {
            Some((_, end)) if *end == from => *end = to,
            _ if count < RANGES => of_epoch.push((from, to)),
            _ => {}
        }
        self.pages.push((from, to));
        self.pages.sort_unstable();
        let mut joined: Vec<Pages> = Vec::with_capacity(self.pages.len());
        for &(from, to) in &self.pages {
            match joined.last_mut() {
                Some((_, end)) if from <= *end + GAP => *end = to.max(*end),
                _ => joined.push((from, to)),
            }
        }
        while joined.len() > RANGES {
            let gaps = joined.windows(2).map(|two| two[1].0 - two[0].1).enumerate();
            let Some((at, _)) = gaps.min_by_key(|&(_, gap)| gap) else {
                break;
            };
            joined[at].1 = joined.remove(at + 1).1;
        }
        self.pages = joined;
        was_fetched
    }
}

/// All of them.
#[derive(Debug)]
pub(crate) struct Files {
    known: FxHashMap<Symbol, FileFacts>,
    by_inode: FxHashMap<(u64, u64), Symbol>,
    limit: usize,
    /// Number of the present epoch. Files requested in an earlier one are not assumed to be in memory.
    epoch: u64,
    /// Start of this epoch if each one before had taken at least [`EPOCH`].
    since: u64,
    /// When all that had been asked for was done last.
    done: u64,
}

impl Files {
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            known: FxHashMap::default(),
            by_inode: FxHashMap::default(),
            limit,
            epoch: 0,
            since: 0,
            done: 0,
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (Symbol, &FileFacts)> {
        self.known.iter().map(|(symbol, facts)| (*symbol, facts))
    }

    pub(crate) fn len(&self) -> usize {
        self.known.len()
    }

    pub(crate) fn get(&self, symbol: Symbol) -> Option<&FileFacts> {
        self.known.get(&symbol)
    }

    /// A file of an earlier session.
    pub(crate) fn restore(&mut self, symbol: Symbol, facts: FileFacts) {
        if self.known.len() < self.limit {
            self.by_inode.insert((facts.device, facts.inode), symbol);
            self.known.insert(symbol, facts);
        }
    }

    /// A file was opened.
    pub(crate) fn met(&mut self, symbol: Symbol, node: &Node, uid: u32) {
        if self.known.len() >= self.limit && !self.known.contains_key(&symbol) {
            // Numbers rise: the lowest quarter was met first.
            let mut numbers: Vec<Symbol> = self.known.keys().copied().collect();
            let at = numbers.len() / 4;
            let (_, &mut first_kept, _) = numbers.select_nth_unstable(at);
            self.known.retain(|symbol, _| *symbol >= first_kept);
            let known = &self.known;
            self.by_inode.retain(|_, symbol| known.contains_key(symbol));
        }
        let facts = self.known.entry(symbol).or_default();
        let place = (node.device, node.inode);
        if (facts.device, facts.inode) != place {
            self.by_inode.remove(&(facts.device, facts.inode));
            self.by_inode.insert(place, symbol);
            (facts.device, facts.inode) = place;
            facts.asked = None;
        }
        if node.size != facts.size {
            facts.size = node.size;
        }
        if !facts.users.contains(&uid) && facts.users.len() < USERS {
            facts.users.push(uid);
        }
    }

    /// A program has fetched pages of this inode at `now`. True if this shows that memory does not have the prefetched pages.
    pub(crate) fn fetched(&mut self, place: (u64, u64), pages: Pages, now: u64) -> bool {
        let symbol = self.by_inode.get(&place);
        let Some(facts) = symbol.and_then(|symbol| self.known.get_mut(symbol)) else {
            return false;
        };
        let (from, to) = pages;
        let is_planned = |&(first, end): &Pages| from < end && first < to;
        let is_current = facts.asked.is_some_and(|(_, epoch)| epoch == self.epoch);
        if is_current && !facts.plan().iter().any(is_planned) {
            // Pages that were left out are requested when the file is predicted next.
            facts.asked = None;
        }
        let was_asked = facts.asked.is_some_and(|(at, epoch)| {
            epoch == self.epoch && at.saturating_add(BEGINS) < self.done
        });
        let was_fetched = facts.add(from, to, self.epoch);
        let is_gone = was_fetched || was_asked;
        let is_gone = is_gone && now.saturating_add(BURST) >= self.since.saturating_add(EPOCH);
        if is_gone {
            self.epoch += 1;
            self.since = now.max(self.since.saturating_add(EPOCH));
        }
        is_gone
    }

    /// At `now` all that was asked for is done.
    pub(crate) fn done(&mut self, now: u64) {
        self.done = now;
    }

    /// The number of the epoch.
    pub(crate) fn epoch(&self) -> u64 {
        self.epoch
    }

    /// The request for a predicted file at `now`, if any: the file's state when seen, and its pages.
    pub(crate) fn due(&mut self, symbol: Symbol, now: u64) -> Option<(&FileFacts, Vec<Pages>)> {
        let facts = self.known.get_mut(&symbol)?;
        let is_fresh =
            |(at, epoch): (u64, u64)| epoch == self.epoch && now.saturating_sub(at) < FRESH;
        if facts.asked.is_some_and(is_fresh) {
            return None;
        }
        facts.asked = Some((now, self.epoch));
        let plan = facts.plan();
        (!plan.is_empty()).then_some((&*facts, plan))
    }

    /// A request was not made after all.
    pub(crate) fn let_go(&mut self, symbol: Symbol) {
        if let Some(facts) = self.known.get_mut(&symbol) {
            facts.asked = None;
        }
    }
}

/// A file as the backend is to know it.
pub(crate) fn meta(facts: &FileFacts, path: &Path) -> FileMeta {
    FileMeta::regular(
        path.to_path_buf(),
        (facts.device, facts.inode),
        facts.size,
        0,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(inode: u64, size: u64) -> Node {
        Node {
            device: 1,
            inode,
            generation: 0,
            size,
        }
    }

    #[test]
    fn what_was_fetched_is_planned_and_small_files_whole() {
        let mut files = Files::new(100);
        files.met(Symbol(1), &file(1, 10_000), 0);
        assert_eq!(files.get(Symbol(1)).expect("met").plan(), [(0, 3)]);
        files.met(Symbol(2), &file(2, 40 << 20), 0);
        assert_eq!(files.get(Symbol(2)).expect("met").plan(), [(0, 64)]);
        for pages in [(1000, 1032), (1040, 1072), (5000, 5032)] {
            files.fetched((1, 2), pages, 0);
        }
        let plan = files.get(Symbol(2)).expect("met").plan();
        assert_eq!(plan, [(1000, 1072), (5000, 5032)]);
        for at in 0..1000 {
            files.fetched((1, 2), (at * 100, at * 100 + 1), 0);
        }
        let facts = files.get(Symbol(2)).expect("met");
        assert!(facts.pages.len() <= RANGES);
        assert!(facts.pages.windows(2).all(|two| two[0].1 < two[1].0));
    }

    #[test]
    fn what_was_left_out_is_asked_for_next_and_a_file_fetched_in_most_places_whole() {
        let mut files = Files::new(100);
        files.met(Symbol(1), &file(1, 40 << 20), 0);
        files.fetched((1, 1), (1000, 1032), 0);
        // Programs that use other parts of it each time, as compilers do.
        let mut expected = vec![(1000, 1032)];
        for first in (2000..2800).step_by(100) {
            let (_, plan) = files.due(Symbol(1), 0).expect("asked for");
            assert_eq!(plan, expected);
            files.fetched((1, 1), (first, first + 20), 1);
            expected.push((first, first + 20));
        }
        for first in (0..8000).step_by(40) {
            files.fetched((1, 1), (first, first + 20), 1);
        }
        let (_, plan) = files.due(Symbol(1), 0).expect("asked for");
        assert_eq!(plan, [(0, 10_240)]);
    }

    #[test]
    fn a_file_asked_for_is_not_asked_for_again_until_something_is_gone_from_memory() {
        let mut files = Files::new(100);
        for number in [1, 2] {
            files.met(Symbol(number), &file(number.into(), 10_000), 0);
            assert!(files.due(Symbol(number), 0).is_some());
            assert!(files.due(Symbol(number), FRESH - 1).is_none());
        }
        // The program was quicker than the request, which nobody has seen done.
        let mut now = EPOCH;
        assert!(!files.fetched((1, 1), (0, 3), now));
        assert!(files.due(Symbol(2), now).is_none());
        // The request was made: a page that a program still has to fetch was evicted, and so were the others.
        now += BEGINS + 1;
        files.done(now);
        assert!(files.fetched((1, 2), (0, 3), now + 1));
        assert!(files.due(Symbol(2), now + 1).is_some());
        // The same epoch says that once.
        assert!(!files.fetched((1, 1), (0, 3), now + 2));
    }

    #[test]
    fn a_page_that_programs_fetch_twice_ends_the_epoch_and_one_read_further_on_does_not() {
        let mut files = Files::new(100);
        files.met(Symbol(1), &file(1, 40 << 20), 0);
        // Known from an earlier epoch.
        files.fetched((1, 1), (0, 320), 0);
        files.epoch += 1;
        let mut now = EPOCH;
        for first in (0..320).step_by(32) {
            now += 1;
            assert!(!files.fetched((1, 1), (first, first + 32), now), "{first}");
        }
        let before = files.epoch();
        assert!(files.fetched((1, 1), (64, 65), now + 1));
        assert_eq!(files.epoch(), before + 1);
    }

    #[test]
    fn several_epochs_may_follow_each_other_and_in_the_long_run_they_are_rare() {
        let mut files = Files::new(100);
        files.met(Symbol(1), &file(1, 10_000), 0);
        let (mut now, mut ends) = (20 * FRESH, Vec::new());
        let began = now;
        while now < began + 20 * EPOCH {
            // Whatever is asked for is never there.
            files.due(Symbol(1), now);
            now += BEGINS + 1;
            files.done(now);
            if files.fetched((1, 1), (0, 3), now) {
                ends.push(now);
            }
        }
        assert!(ends[3] - began < EPOCH, "{ends:?}");
        let most = (now - began + BURST) / EPOCH + 1;
        assert!(ends.len() as u64 <= most, "{ends:?}");
    }

    #[test]
    fn files_are_bounded_and_the_newest_stay() {
        let mut files = Files::new(1000);
        for number in 0..10_000 {
            files.met(Symbol(number), &file(number.into(), 1), 0);
            assert!(files.len() <= 1000);
        }
        assert_eq!(files.by_inode.len(), files.len());
        assert!(files.get(Symbol(9999)).is_some());
    }
}
