//! Threads that bring wants into memory.
//!
//! Each thread takes the next want, asks for it, and takes the next. A request for pages returns once the device has it; to find a
//! file or a name takes as long as its device does, so there are as many threads as may usefully wait side by side.
//!
//! Invariants: nothing but regular files is opened, and directories that are listed; a file is open only while it is worked on; at
//! most a budget of pages is requested and not passed by the program; nobody waits for a thread that a file system holds up.
//!
//! [`State`] decides, and [`Worker`] does what was decided. Neither has threads, clocks or locks, and a worker's calls are those of a
//! [`System`]: a model of a machine drives both in virtual time. [`Shared`] is the real threads.
//!
//! Data flow: wants → [`State::next`] → [`Worker`] → hints; what came of them → [`State`].

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use foreread_plan::{FileId, FileMeta, PAGE};
use foreread_sys::file::FileFacts;
use foreread_sys::thread;
use rustc_hash::FxHashSet;

use crate::Files;
use crate::backlog::Backlog;
use crate::price::{Price, Reach, Sight};
use crate::system::{Kept, Kernel, Known, System, now};
use crate::wants::{JOINED, Want, What};

/// Threads, at most. Other numbers were not measured with this code.
const THREADS: usize = 16;
/// Bytes of stack of each.
const STACK: usize = 256 << 10;
/// Wants that wait to be taken, at most: a bound on memory (48 bytes each).
const WAITING: usize = 1 << 16;
/// How long a thread waits for the program to pass what was requested, before it looks again whether the run is over.
const LOOK: Duration = Duration::from_millis(100);

/// How long the end of a run waits for threads that may be stuck in a file system: a program's caller may notice longer waits.
const PARTING: Duration = Duration::from_millis(50);

/// Why nothing is fetched of a file whose pages do not stay in memory.
const UNKEPT: &str = "its file system keeps no page that is read in memory";

/// How a file differs from what was recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Difference {
    /// Another file has its name.
    Replaced,
    /// Its size is now this, in bytes.
    Resized(u64),
    /// Same size, other contents.
    Modified,
    /// It cannot be read, for this reason.
    Gone(String),
}

/// What became of the wants so far.
#[derive(Default)]
pub(crate) struct State {
    wants: Backlog,
    /// Whether all wants of the plan are known.
    is_complete: bool,
    /// Whether nothing more is to be fetched.
    is_stopped: bool,
    /// Threads that there are.
    threads: usize,
    /// The file of each want that a thread is working on.
    working: Vec<FileId>,
    /// Pages of the wants taken so far, and pages of the gaps between them.
    taken: u64,
    between: u64,
    /// What requests cost, by device.
    prices: BTreeMap<u64, Price>,
    /// Pages that may be requested and not passed.
    budget: u64,
    /// Planned pages that the program has read so far.
    passed: u64,
    /// Pages that may be requested and not passed while the plan is on trial; `None` once it is trusted.
    trial: Option<u64>,
    /// Whether there was ever no room in the budget.
    was_full: bool,
    pub(crate) issued: Vec<(FileId, Range<u64>)>,
    /// Names looked up, and whether they were waited for.
    pub(crate) names: Vec<(FileId, bool)>,
    pub(crate) differences: Vec<(FileId, Difference)>,
    pub(crate) devices: BTreeSet<u64>,
}

/// What a thread is to do.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Next {
    Work(Task),
    /// Wait until the program has passed what was requested.
    AwaitRoom,
    AwaitWants,
    End,
}

/// A request.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Task {
    want: Want,
    /// The device that is to be looked at afterwards.
    look: Option<u64>,
}

/// What came of one want.
pub(crate) struct Done {
    /// The want's file.
    file: FileId,
    issued: Vec<(FileId, Range<u64>)>,
    name: Option<(FileId, bool)>,
    differences: Vec<(FileId, Difference)>,
    device: Option<u64>,
    sight: Option<(u64, Sight)>,
}

/// What the threads share.
pub(crate) struct Shared {
    files: Arc<dyn Files>,
    state: Mutex<State>,
    /// There are wants, or an end.
    more: Condvar,
    /// There is room for wants, or for pages.
    room: Condvar,
    known: Arc<Known>,
}

impl Shared {
    pub(crate) fn new(files: Arc<dyn Files>, budget: u64, trial: Option<u64>) -> Self {
        Self {
            files,
            state: Mutex::new(State::new(budget, trial)),
            more: Condvar::new(),
            room: Condvar::new(),
            known: Arc::default(),
        }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds wants, once there is room; false if no more are needed.
    pub(crate) fn add(self: &Arc<Self>, wants: &mut Vec<Want>) -> bool {
        let mut state = self.lock();
        while !state.has_room() {
            state = wait(&self.room, state);
        }
        if state.is_stopped {
            return false;
        }
        state.add(wants, &*self.files);
        self.start_one(&mut state);
        drop(state);
        self.more.notify_all();
        true
    }

    /// Starts one more thread if it has something to do.
    fn start_one(self: &Arc<Self>, state: &mut State) {
        if !state.wants_thread() {
            return;
        }
        let shared = Arc::clone(self);
        let started = thread::builder("foreread-fetch")
            .stack_size(STACK)
            .spawn(move || shared.work());
        // Fewer have to do.
        if started.is_ok() {
            state.has_started();
        }
    }

    /// A thread, to its end.
    fn work(self: &Arc<Self>) {
        let system = Kernel::new(Arc::clone(&self.known));
        let mut worker = Worker::new(Arc::clone(&self.files), system);
        let mut done = None;
        while let Some(task) = self.next(done.take(), &mut worker) {
            done = Some(now(worker.serve(task)));
        }
        worker.let_go();
    }

    /// The next request; `None` at the end. The last one is `done`. While there is none, the worker has nothing open.
    fn next(self: &Arc<Self>, done: Option<Done>, worker: &mut Worker<Kernel>) -> Option<Task> {
        let mut state = self.lock();
        if let Some(done) = done {
            state.enter(done);
        }
        loop {
            let had_no_room = !state.has_room();
            let wake = match state.next() {
                Next::End => return None,
                Next::Work(task) => {
                    if had_no_room && state.has_room() {
                        self.room.notify_all();
                    }
                    self.start_one(&mut state);
                    return Some(task);
                }
                Next::AwaitRoom => &self.room,
                Next::AwaitWants => &self.more,
            };
            worker.let_go();
            state = wait(wake, state);
        }
    }

    /// All wants of the plan have been added.
    pub(crate) fn complete(&self) {
        self.lock().complete();
        self.more.notify_all();
    }

    /// Whether all wants of the plan are known.
    pub(crate) fn is_complete(&self) -> bool {
        self.lock().is_complete()
    }

    /// Nothing more is to be fetched.
    pub(crate) fn stop(&self) {
        self.lock().stop();
        self.more.notify_all();
        self.room.notify_all();
    }

    /// Stops, and waits for what is being requested to be entered, unless a file system holds that up: of that it says so.
    pub(crate) fn settle(&self) -> MutexGuard<'_, State> {
        self.stop();
        let begun = Instant::now();
        let mut state = self.lock();
        while !state.working.is_empty() && begun.elapsed() < PARTING {
            let waited = self.room.wait_timeout(state, PARTING / 50);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        let why = || Difference::Gone(format!("no answer within {} ms", PARTING.as_millis()));
        let held_up = std::mem::take(&mut state.working);
        let held_up = held_up.into_iter().map(|file| (file, why()));
        state.differences.extend(held_up);
        state
    }

    /// The program has read so many planned pages.
    pub(crate) fn passed(&self, pages: u64) {
        let was_full = self.lock().passed(pages);
        if was_full {
            self.room.notify_all();
        }
    }

    /// The plan is on trial no more.
    pub(crate) fn trust(&self) {
        let was_on_trial = self.lock().trust();
        if was_on_trial {
            self.room.notify_all();
        }
    }

    /// Whether all wants have been seen to, whatever became of them.
    pub(crate) fn is_done(&self) -> bool {
        self.lock().is_done()
    }
}

impl State {
    /// At most `budget` pages are requested and not passed by the program, and at most `trial` until the plan is trusted.
    pub(crate) fn new(budget: u64, trial: Option<u64>) -> Self {
        Self {
            budget: budget.max(1),
            trial,
            ..Self::default()
        }
    }

    /// Whether more wants may be added, or need not be because it is over.
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

    /// Whether one more thread would have something to do.
    pub(crate) fn wants_thread(&self) -> bool {
        self.threads < THREADS && self.working.len() >= self.threads && !self.wants.is_empty()
    }

    /// One more thread was started.
    pub(crate) fn has_started(&mut self) {
        self.threads += 1;
    }

    /// What a thread that has nothing to do is to do.
    pub(crate) fn next(&mut self) -> Next {
        if self.is_stopped {
            return Next::End;
        }
        if self.is_full() {
            self.was_full |= self.trial.is_none();
            return Next::AwaitRoom;
        }
        // Gaps take memory that nobody asked for.
        let has_room = self.trial.is_none() && self.between < self.budget / 2;
        let room = self.most() - self.taken.saturating_sub(self.passed);
        let prices = &mut self.prices;
        let mut look = false;
        let taken = self.wants.take(room, |dev| {
            let price = prices.entry(dev).or_default();
            look = price.made();
            if has_room { price.reach() } else { Reach::NEAR }
        });
        let Some(taken) = taken else {
            return if self.is_complete {
                Next::End
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
        })
    }

    /// The program has read so many planned pages; whether there was no room before.
    pub(crate) fn passed(&mut self, pages: u64) -> bool {
        let was_full = self.is_full();
        self.passed += pages;
        was_full
    }

    /// The plan is on trial no more; whether it was.
    pub(crate) fn trust(&mut self) -> bool {
        self.trial.take().is_some()
    }

    /// Nothing more is to be fetched.
    pub(crate) fn stop(&mut self) {
        self.is_stopped = true;
        self.wants.clear();
    }

    /// Whether all wants have been seen to, whatever became of them.
    pub(crate) fn is_done(&self) -> bool {
        self.is_stopped || self.is_complete && self.wants.is_empty() && self.working.is_empty()
    }

    /// Whether no more may be requested until the program has passed some of it.
    fn is_full(&self) -> bool {
        self.taken.saturating_sub(self.passed) >= self.most()
    }

    /// Pages that may be requested and not passed.
    fn most(&self) -> u64 {
        self.trial.map_or(self.budget, |most| most.min(self.budget))
    }

    #[cfg(test)]
    pub(crate) fn is_on_trial(&self) -> bool {
        self.trial.is_some()
    }

    /// Whether all wants of the plan are known.
    pub(crate) fn is_complete(&self) -> bool {
        self.is_complete
    }

    /// Whether the budget was ever used up.
    pub(crate) fn was_full(&self) -> bool {
        self.was_full
    }

    /// A want is seen to.
    pub(crate) fn enter(&mut self, done: Done) {
        if let Some(place) = self.working.iter().position(|file| *file == done.file) {
            self.working.swap_remove(place);
        }
        self.issued.extend(done.issued);
        self.names.extend(done.name);
        self.differences.extend(done.differences);
        self.devices.extend(done.device);
        if let Some((dev, sight)) = done.sight {
            self.prices.entry(dev).or_default().saw(sight);
        }
    }
}

fn wait<'a>(what: &Condvar, state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
    let waited = what.wait_timeout(state, LOOK);
    waited.unwrap_or_else(PoisonError::into_inner).0
}

/// What one thread does.
pub(crate) struct Worker<S: System> {
    files: Arc<dyn Files>,
    system: S,
    /// The file of the last want, as long as there are wants.
    held: Option<(FileId, Open<S::File>)>,
    /// Files of which nothing is fetched, and it was said.
    met: FxHashSet<FileId>,
}

/// A file that is open.
struct Open<F> {
    file: F,
    facts: FileFacts,
}

impl<S: System> Worker<S> {
    pub(crate) fn new(files: Arc<dyn Files>, system: S) -> Self {
        Self {
            files,
            system,
            held: None,
            met: FxHashSet::default(),
        }
    }

    /// Brings what is wanted into memory, or on its way.
    pub(crate) async fn serve(&mut self, Task { want, look }: Task) -> Done {
        let mut done = Done::of(want.file);
        match want.what {
            What::Pages(pages) => self.fetch(want.file, pages, &mut done).await,
            What::Name(kind) => {
                self.held = None;
                let meta = self.files.file(want.file);
                let path = meta.map(|meta| &*meta.path);
                if let Some(path) = path
                    && let Some(waited) = self.system.look_up(path, kind).await
                {
                    done.name = Some((want.file, waited));
                }
            }
            What::Together(all) => self.fetch_together(all, &mut done).await,
        }
        if let Some(dev) = look
            && let Some(sight) = self.system.sight(done.device.unwrap_or(dev)).await
        {
            done.sight = Some((dev, sight));
        }
        done
    }

    /// Closes all that is open.
    pub(crate) fn let_go(&mut self) {
        self.held = None;
        self.system.let_go();
    }

    /// Opens a file.
    async fn open(&mut self, id: FileId, done: &mut Done) -> Option<Open<S::File>> {
        let meta = self.files.file(id)?;
        match self.system.open(&meta.path).await {
            Ok((file, facts)) => {
                let differs = difference(meta, &facts).map(|differs| (id, differs));
                done.differences.extend(differs);
                done.device = Some(facts.dev);
                Some(Open { file, facts })
            }
            Err(why) => {
                self.refuse(id, &why.to_string(), done);
                None
            }
        }
    }

    /// Says once why nothing is fetched of a file.
    fn refuse(&mut self, id: FileId, why: &str, done: &mut Done) {
        if self.met.insert(id) {
            let gone = Difference::Gone(why.to_owned());
            done.differences.push((id, gone));
        }
    }

    /// The parts of these pages that a hint would fetch.
    async fn missing(
        &mut self,
        id: FileId,
        open: &Open<S::File>,
        pages: Range<u64>,
        done: &mut Done,
    ) -> Vec<Range<u64>> {
        let end = pages.end.min(open.facts.size.div_ceil(PAGE));
        if pages.start >= end {
            return Vec::new();
        }
        let Open { file, facts } = open;
        match self.system.keeps(file, facts, pages.start).await {
            Kept::Yes => {}
            Kept::ByReading => done.issued.push((id, pages.start..pages.start + 1)),
            Kept::No => {
                self.refuse(id, UNKEPT, done);
                return Vec::new();
            }
        }
        self.system.missing(file, facts, pages.start..end).await
    }

    /// Requests pages of small files in one call, until the end of which the kernel keeps back what it has for the device and joins
    /// what lies next to each other.
    async fn fetch_together(&mut self, all: Vec<(FileId, Range<u64>)>, done: &mut Done) {
        self.held = None;
        let mut parts = Vec::new();
        for (id, pages) in all {
            let Some(open) = self.open(id, done).await else {
                continue;
            };
            let missing = self.missing(id, &open, pages, done).await;
            if !missing.is_empty() {
                parts.push((id, open, missing));
            }
        }
        // The kernel joins a request to the one before it alone.
        parts.sort_unstable_by_key(|(_, open, _)| open.facts.ino);
        let joined = parts.len() > 1 && self.hint_together(&parts).await;
        for (id, open, missing) in parts {
            for part in missing {
                if joined || self.hint(&open, &part).await {
                    done.issued.push((id, part));
                }
            }
        }
    }

    /// Hints about all these parts at once; whether anything came of it.
    async fn hint_together(&mut self, parts: &[Part<S::File>]) -> bool {
        let each = parts.iter().flat_map(|(_, open, missing)| {
            missing.iter().map(|part| (&open.file, open.bytes(part)))
        });
        let each: Vec<_> = each.collect();
        self.system.will_need_together(&each).await
    }

    /// Whether a hint about this part could be given.
    async fn hint(&mut self, open: &Open<S::File>, part: &Range<u64>) -> bool {
        let hinted = self.system.will_need(&open.file, open.bytes(part));
        hinted.await.is_ok()
    }

    async fn fetch(&mut self, id: FileId, pages: Range<u64>, done: &mut Done) {
        let held = self.held.take().filter(|(last, _)| *last == id);
        let open = match held {
            Some((_, open)) => open,
            None => match self.open(id, done).await {
                Some(open) => open,
                None => return,
            },
        };
        for mut part in self.missing(id, &open, pages, done).await {
            // The kernel cuts what is longer.
            while part.start < part.end {
                let piece = part.start..part.end.min(part.start + JOINED);
                part.start = piece.end;
                if self.hint(&open, &piece).await {
                    done.issued.push((id, piece));
                }
            }
        }
        self.held = Some((id, open));
    }
}

/// Pages of a file that are to be hinted about.
type Part<F> = (FileId, Open<F>, Vec<Range<u64>>);

impl Done {
    fn of(file: FileId) -> Self {
        Self {
            file,
            issued: Vec::new(),
            name: None,
            differences: Vec::new(),
            device: None,
            sight: None,
        }
    }
}

impl<F> Open<F> {
    /// Where pages of it are, in bytes, but for what lies past its end.
    fn bytes(&self, pages: &Range<u64>) -> Range<u64> {
        pages.start * PAGE..(pages.end * PAGE).min(self.facts.size)
    }
}

/// How a file differs from what is known of it.
pub(crate) fn difference(meta: &FileMeta, facts: &FileFacts) -> Option<Difference> {
    if (facts.dev, facts.ino) != (meta.dev, meta.ino) {
        Some(Difference::Replaced)
    } else if facts.size != meta.size {
        Some(Difference::Resized(facts.size))
    } else if facts.mtime_ns != meta.mtime_ns {
        Some(Difference::Modified)
    } else {
        None
    }
}
