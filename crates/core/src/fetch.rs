//! Selects the next want, and notes the results of earlier ones.
//!
//! Each thread takes a want, requests it, and takes the next. A request for pages returns when the device has accepted it. A lookup of a
//! file or a name lasts as long as its device works. So there are as many threads as can usefully wait at the same time.
//!
//! Invariants: at most a budget of pages lies between the program and the last request; no page is requested that the program was
//! seen to read; if this process may open too few files for all threads, there are fewer.
//!
//! No threads, clocks or locks: [`Shared`](crate::threads::Shared) drives it by real threads, and a model of a machine in virtual
//! time.
//!
//! Data flow: wants → [`Fetching::next`] → [`Worker`](crate::worker::Worker) → hints; their results → [`Fetching::enter`].

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::time::Duration;

use foreread_plan::FileId;

use crate::Files;
use crate::backlog::Backlog;
use crate::pages::Pages;
use crate::price::{Price, Reach};
use crate::wants::{JOINED, Want};
use crate::worker::{Difference, Done, Task};

/// Threads, at most. Other numbers were not measured with this code.
const THREADS: usize = 16;
/// Wants that wait to be requested, at most: bounds memory (48 bytes each).
const WAITING: usize = 1 << 16;
/// One part in this many of the free memory may be requested and not yet read. Pages leave memory in the order in which they came. Once a
/// fetched page has left unread, each step of the program brings in two pages: its own read, and the next fetched page. If too much is
/// ahead, every page fetched from then on leaves before it is read. In 32 MiB of memory, 6,000 sequential and 6,000 scattered pages took
/// 0.63 s alone, 0.84 s with three quarters of the memory, 0.23 s with a half, 0.24 s with a quarter and 0.30 s with an eighth; 12,000
/// scattered pages took 0.99, 0.29, 0.27, 0.31 and 0.36 s.
const SHARE: u64 = 2;
/// Time for which the end of a run waits for threads that may be blocked in a file system. A caller may notice longer waits.
pub(crate) const PARTING: Duration = Duration::from_millis(50);

/// The wants, and the results so far.
#[derive(Default)]
pub(crate) struct Fetching {
    wants: Backlog,
    /// True if all wants of the plan are known.
    is_complete: bool,
    /// True if fetching has ended.
    is_stopped: bool,
    /// Threads that there are, and how many there may be.
    threads: usize,
    most_threads: usize,
    /// Wants that failed for lack of descriptors.
    again: Vec<Want>,
    /// The file of each want that a thread is working on.
    working: Vec<FileId>,
    /// Pages of the plan up to the last requested want, and pages of the gaps requested.
    taken: u64,
    between: u64,
    /// Pages that were issued and not waited for.
    under_way: u64,
    /// Cost of requests, by device.
    prices: BTreeMap<u64, Price>,
    /// Pages that may be requested and not passed.
    budget: u64,
    /// Pages of gaps that may be requested.
    gaps: u64,
    /// Pages that the program has read so far, and how many of them are planned.
    pub(crate) read: Pages,
    passed: u64,
    /// While the plan is on trial: pages that may be requested at first; each page of the plan that the program reads allows one
    /// more. `None` once the plan is trusted.
    trial: Option<u64>,
    /// True if the budget was ever used up.
    was_full: bool,
    pub(crate) issued: Vec<(FileId, Range<u64>)>,
    /// Names looked up, and whether they were waited for.
    pub(crate) names: Vec<(FileId, bool)>,
    pub(crate) differences: Vec<(FileId, Difference)>,
    pub(crate) devices: BTreeSet<u64>,
}

/// The next step of a thread.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Next {
    Work(Task),
    /// Wait until the program has read requested pages.
    AwaitRoom,
    AwaitWants,
    End,
}

impl Fetching {
    /// The budget is a part of `memory`, the free pages. Until the plan is trusted, only `trial` pages of it may be used at first, and one
    /// more for each planned page that the program reads.
    pub(crate) fn new(memory: u64, trial: Option<u64>) -> Self {
        let budget = (memory / SHARE).max(1);
        Self {
            budget,
            gaps: budget / 2,
            trial,
            most_threads: THREADS,
            ..Self::default()
        }
    }

    /// For filling memory without a program: all wants are requested, with at most this many pages of gaps.
    pub(crate) fn filling(gaps: u64) -> Self {
        Self {
            budget: u64::MAX,
            gaps,
            most_threads: THREADS,
            ..Self::default()
        }
    }

    /// True if more wants may be added, or are no longer needed.
    pub(crate) fn has_room(&self) -> bool {
        self.wants.len() < WAITING || self.is_stopped
    }

    /// Adds wants.
    pub(crate) fn add(&mut self, wants: &mut Vec<Want>, files: &dyn Files) {
        for want in wants.drain(..) {
            self.wants.add(want, files);
        }
    }

    /// All wants of the plan have been added.
    pub(crate) fn complete(&mut self) {
        self.is_complete = true;
    }

    /// True if one more thread would have work.
    pub(crate) fn wants_thread(&self) -> bool {
        self.threads < self.most_threads
            && self.working.len() >= self.threads
            && !self.wants.is_empty()
    }

    /// Notes the start of a thread.
    pub(crate) fn has_started(&mut self) {
        self.threads += 1;
    }

    /// The next step of an idle thread.
    pub(crate) fn next(&mut self) -> Next {
        if self.is_stopped {
            return self.end();
        }
        if self.is_full() {
            self.was_full |= self.trial.is_none();
            return Next::AwaitRoom;
        }
        if let Some(want) = self.again.pop() {
            self.working.push(want.file);
            self.taken += want.pages();
            return Next::Work(Task {
                want,
                look: None,
                is_enough: self.is_enough(),
            });
        }
        // Gaps take memory.
        let has_room = self.trial.is_none() && self.between < self.gaps;
        let room = self.most() - self.taken.saturating_sub(self.passed);
        let prices = &mut self.prices;
        let mut look = false;
        let taken = self.wants.take(room, &self.read, |dev| {
            let price = prices.entry(dev).or_default();
            look = price.made();
            if has_room { price.reach() } else { Reach::NEAR }
        });
        self.taken += self.wants.left();
        let Some(taken) = taken else {
            return if self.is_complete {
                self.end()
            } else {
                Next::AwaitWants
            };
        };
        self.working.push(taken.want.file);
        self.taken += taken.wanted;
        self.between += taken.want.pages() - taken.wanted;
        Next::Work(Task {
            want: taken.want,
            look: taken.dev.filter(|_| look),
            is_enough: self.is_enough(),
        })
    }

    /// True if the largest request of each thread is on its way.
    fn is_enough(&self) -> bool {
        self.under_way >= THREADS as u64 * JOINED
    }

    /// A thread ends.
    fn end(&mut self) -> Next {
        self.threads = self.threads.saturating_sub(1);
        Next::End
    }

    /// The program has read this many planned pages. True if the budget was used up before.
    pub(crate) fn passed(&mut self, pages: u64) -> bool {
        let was_full = self.is_full();
        self.passed += pages;
        was_full
    }

    /// The program has waited for pages that it had read before: they have left memory. If memory is short because of the pages
    /// ahead of the program, the budget for these is halved.
    pub(crate) fn waited_again(&mut self) {
        if self.was_full {
            self.budget = (self.budget / 2).max(JOINED.min(self.budget));
        }
    }

    /// Ends the trial of the plan. True if it was on trial.
    pub(crate) fn trust(&mut self) -> bool {
        self.trial.take().is_some()
    }

    /// Ends fetching.
    pub(crate) fn stop(&mut self) {
        self.is_stopped = true;
        self.wants.clear();
        self.again.clear();
    }

    /// True if fetching has ended.
    pub(crate) fn is_stopped(&self) -> bool {
        self.is_stopped
    }

    /// True if there is any thread.
    pub(crate) fn has_threads(&self) -> bool {
        self.threads > 0
    }

    /// True if no thread works on a want.
    pub(crate) fn is_settled(&self) -> bool {
        self.working.is_empty()
    }

    /// Stops waiting for wants that threads still work on: their files count as gone.
    pub(crate) fn part(&mut self) {
        let why = || Difference::Gone(format!("no answer within {} ms", PARTING.as_millis()));
        let held_up = std::mem::take(&mut self.working);
        let held_up = held_up.into_iter().map(|file| (file, why()));
        self.differences.extend(held_up);
    }

    /// True if all wants are finished, fetched or not.
    pub(crate) fn is_done(&self) -> bool {
        let is_empty = self.wants.is_empty() && self.again.is_empty() && self.working.is_empty();
        self.is_stopped || self.is_complete && is_empty
    }

    /// True if the budget is used up until the program has read requested pages.
    fn is_full(&self) -> bool {
        self.taken.saturating_sub(self.passed) >= self.most()
    }

    /// Pages that may be requested and not passed.
    fn most(&self) -> u64 {
        self.trial
            .map_or(self.budget, |first| (first + self.passed).min(self.budget))
    }

    /// Pages of the requested wants, and the number of these that the program has passed.
    pub(crate) fn progress(&self) -> (u64, u64) {
        (self.taken, self.passed.min(self.taken))
    }

    #[cfg(test)]
    pub(crate) fn is_on_trial(&self) -> bool {
        self.trial.is_some()
    }

    /// True if all wants of the plan are known.
    pub(crate) fn is_complete(&self) -> bool {
        self.is_complete
    }

    /// True if the budget was ever used up.
    pub(crate) fn was_full(&self) -> bool {
        self.was_full
    }

    /// Enters the result of a want. True if the thread must end because this process may have too few files open.
    pub(crate) fn enter(&mut self, done: Done) -> bool {
        if let Some(place) = self.working.iter().position(|file| *file == done.file) {
            self.working.swap_remove(place);
        }
        let issued = done.issued.iter().map(|(_, pages)| pages.end - pages.start);
        self.under_way += issued.sum::<u64>();
        self.under_way = self.under_way.saturating_sub(done.arrived);
        self.issued.extend(done.issued);
        self.names.extend(done.name);
        self.differences.extend(done.differences);
        self.devices.extend(done.device);
        if let Some((dev, sight)) = done.sight {
            self.prices.entry(dev).or_default().saw(sight);
        }
        if done.left.is_empty() || self.is_stopped {
            return false;
        }
        let is_useless = done.device.is_none();
        if is_useless && self.threads <= 1 {
            let why = || Difference::Gone(rustix::io::Errno::MFILE.to_string());
            let gone = done.left.into_iter().map(|(file, _)| (file, why()));
            self.differences.extend(gone);
            return false;
        }
        let left = Want::of(done.left);
        self.taken -= left.pages().min(self.taken);
        self.again.push(left);
        if is_useless {
            self.threads -= 1;
            self.most_threads = self.threads;
        }
        is_useless
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wants::What;
    use foreread_plan::FileMeta;

    #[test]
    fn no_more_is_on_its_way_than_each_threads_largest_request() {
        let mut state = Fetching::new(1 << 30, None);
        let files = BTreeMap::<FileId, FileMeta>::new();
        let want = |n: u64| Want {
            file: FileId(n as u32),
            what: What::Pages(0..JOINED),
            left: 0,
        };
        state.add(&mut (0..200).map(want).collect(), &files);
        state.complete();
        let (mut issued, mut arrived, mut waited) = (0, 0, 0);
        while let Next::Work(task) = state.next() {
            let mut done = Done::of(task.want.file);
            done.issued.push((task.want.file, 0..JOINED));
            issued += JOINED;
            if task.is_enough {
                done.arrived = JOINED;
                (arrived, waited) = (arrived + JOINED, waited + 1);
            }
            state.enter(done);
            assert!(issued - arrived <= THREADS as u64 * JOINED);
        }
        assert_eq!(issued, 200 * JOINED);
        assert_eq!(waited, 200 - THREADS);
    }

    /// A file of this many pages.
    fn of_pages(pages: u64) -> FileMeta {
        FileMeta {
            path: "/data".into(),
            dev: 0x801,
            ino: 1,
            size: pages * foreread_plan::PAGE,
            mtime_ns: 0,
            written: false,
            advice: foreread_plan::Advice::Normal,
            directory: false,
        }
    }

    #[test]
    fn nothing_is_requested_that_the_program_has_read() {
        let mut state = Fetching::new(1 << 30, None);
        let meta = of_pages(400);
        let (file, files) = (FileId(0), BTreeMap::from([(FileId(0), meta)]));
        let want = |page: u64| Want {
            file,
            what: What::Pages(page..page + 1),
            left: 0,
        };
        state.add(&mut (0..400).map(want).collect(), &files);
        state.complete();
        for pages in [0..3, 100..150, 399..400] {
            state.read.add(file, pages);
        }
        let mut requested = 0;
        while let Next::Work(task) = state.next() {
            let What::Pages(pages) = &task.want.what else {
                panic!("{task:?}");
            };
            assert_eq!(state.read.count(file, pages.clone()), 0, "{pages:?}");
            requested += task.want.pages();
            state.enter(Done::of(file));
        }
        // All pages of the plan count as taken, just as all reads of it count as passed.
        assert_eq!((requested, state.progress().0), (400 - 54, 400));
        assert!(state.is_done());
    }

    #[test]
    fn memory_that_the_program_reads_again_is_given_back() {
        let mut state = Fetching::new(2 * 1024, None);
        let meta = of_pages(10_000);
        let (file, files) = (FileId(0), BTreeMap::from([(FileId(0), meta)]));
        let want = |page: u64| Want {
            file,
            what: What::Pages(page..page + 1),
            left: 0,
        };
        state.add(&mut (0..10_000).map(want).collect(), &files);
        let fill = |state: &mut Fetching| {
            while let Next::Work(_) = state.next() {
                state.enter(Done::of(file));
            }
            let (taken, passed) = state.progress();
            taken - passed
        };
        state.waited_again();
        assert_eq!(fill(&mut state), 1024, "there was room until now");
        for ahead in [512, 256, 128, 64, JOINED, JOINED] {
            state.passed(1024);
            state.waited_again();
            let most = fill(&mut state);
            assert!((ahead..ahead + JOINED).contains(&most), "{most} of {ahead}");
        }
    }
}
