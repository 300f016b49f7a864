//! Threads that bring wants into memory.
//!
//! Each thread takes the next want, asks for it, and takes the next. A request for pages returns once the device has it; to find a
//! file or a name takes as long as its device does, so there are as many threads as may usefully wait side by side.
//!
//! Invariants: nothing but regular files is opened, and directories that are listed; a file is open only while it is worked on; at
//! most a budget of pages is requested and not passed by the program; nobody waits for a thread that a file system holds up.
//!
//! Data flow: wants → [`Shared::next`] → [`Worker`] → hints; what came of them → [`State`].

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io;
use std::ops::Range;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use foreread_plan::{FileId, FileMeta, Kind, PAGE};
use foreread_sys::file::{FileFacts, Opener};
use foreread_sys::name::Place;
use foreread_sys::residency::Residency;
use foreread_sys::together::Together;
use foreread_sys::{cache, thread};
use rustc_hash::FxHashSet;

use crate::Files;
use crate::wants::{Want, What};

/// Threads, at most. Other numbers were not measured with this code.
const THREADS: usize = 16;
/// Bytes of one hint among several given together, at most: a small file.
const LARGEST: u32 = 128 << 10;
/// Bytes of stack of each.
const STACK: usize = 256 << 10;
/// Wants that wait to be taken, at most: a bound on memory (48 bytes each).
const WAITING: usize = 1 << 16;
/// Entries of a directory that are read, at most: a bound on time.
const ENTRIES: usize = 1 << 16;
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
    wants: VecDeque<Want>,
    /// Whether all wants of the plan are known.
    is_complete: bool,
    /// Whether nothing more is to be fetched.
    is_stopped: bool,
    /// Threads that there are.
    threads: usize,
    /// The file of each want that a thread is working on.
    working: Vec<FileId>,
    /// Pages of the wants taken so far.
    taken: u64,
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
    /// Whether devices keep what is read of them in memory, where that is known.
    keeps: BTreeMap<u64, bool>,
}

/// What came of one want.
struct Done {
    /// The want's file.
    file: FileId,
    issued: Vec<(FileId, Range<u64>)>,
    name: Option<(FileId, bool)>,
    differences: Vec<(FileId, Difference)>,
    device: Option<u64>,
}

/// What the threads share.
pub(crate) struct Shared {
    files: Arc<dyn Files>,
    state: Mutex<State>,
    /// There are wants, or an end.
    more: Condvar,
    /// There is room for wants, or for pages.
    room: Condvar,
    /// Pages that may be requested and not passed.
    budget: u64,
    opener: Opener,
}

impl Shared {
    pub(crate) fn new(files: Arc<dyn Files>, budget: u64, trial: Option<u64>) -> Self {
        Self {
            files,
            state: Mutex::new(State {
                trial,
                ..State::default()
            }),
            more: Condvar::new(),
            room: Condvar::new(),
            budget: budget.max(1),
            opener: Opener::default(),
        }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds wants, once there is room; false if no more are needed.
    pub(crate) fn add(self: &Arc<Self>, wants: &mut Vec<Want>) -> bool {
        let mut state = self.lock();
        while state.wants.len() >= WAITING && !state.is_stopped {
            state = wait(&self.room, state);
        }
        if state.is_stopped {
            return false;
        }
        state.wants.extend(wants.drain(..));
        self.start_one(&mut state);
        drop(state);
        self.more.notify_all();
        true
    }

    /// Starts one more thread if there are wants for it.
    fn start_one(self: &Arc<Self>, state: &mut State) {
        if state.threads >= THREADS || state.working.len() < state.threads || state.wants.is_empty()
        {
            return;
        }
        let shared = Arc::clone(self);
        let work = move || Worker::new(shared).work();
        let started = thread::builder("foreread-fetch")
            .stack_size(STACK)
            .spawn(work);
        // Fewer have to do.
        state.threads += usize::from(started.is_ok());
    }

    /// All wants of the plan have been added.
    pub(crate) fn complete(&self) {
        self.lock().is_complete = true;
        self.more.notify_all();
    }

    /// Whether all wants of the plan are known.
    pub(crate) fn is_complete(&self) -> bool {
        self.lock().is_complete
    }

    /// Nothing more is to be fetched.
    pub(crate) fn stop(&self) {
        let mut state = self.lock();
        state.is_stopped = true;
        state.wants.clear();
        drop(state);
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
        let mut state = self.lock();
        let was_full = self.is_full(&state);
        state.passed += pages;
        drop(state);
        if was_full {
            self.room.notify_all();
        }
    }

    /// Whether pages of a file stay in memory once they are read: so they do on a block device. Of another device that is found out
    /// by reading the first page that is wanted of it. Direct I/O of a client in user space leaves nothing in memory.
    fn is_kept(&self, id: FileId, open: &Open, page: u64, done: &mut Done) -> bool {
        let dev = open.facts.dev;
        if rustix::fs::major(dev) != 0 {
            return true;
        }
        if let Some(known) = self.lock().keeps.get(&dev) {
            return *known;
        }
        let one = page..page + 1;
        let is_missing = || !missing(&open.fd, &open.facts, &one).is_empty();
        let was_missing = is_missing();
        if was_missing && rustix::io::pread(&open.fd, &mut [0], page * PAGE).is_err() {
            // Tells nothing of other files.
            return true;
        }
        let is_kept = !was_missing || !is_missing();
        self.lock().keeps.insert(dev, is_kept);
        if was_missing && is_kept {
            done.issued.push((id, one));
        }
        is_kept
    }

    /// The plan is on trial no more.
    pub(crate) fn trust(&self) {
        if self.lock().trial.take().is_some() {
            self.room.notify_all();
        }
    }

    /// Whether no more may be requested until the program has passed some of it.
    fn is_full(&self, state: &State) -> bool {
        let most = state
            .trial
            .map_or(self.budget, |most| most.min(self.budget));
        state.taken.saturating_sub(state.passed) >= most
    }

    /// Whether all wants have been seen to, whatever became of them.
    pub(crate) fn is_done(&self) -> bool {
        let state = self.lock();
        state.is_stopped || state.is_complete && state.wants.is_empty() && state.working.is_empty()
    }

    /// Closes what a thread that has nothing to do has open.
    fn let_go(&self, held: &mut Held) {
        *held = Held::default();
        self.opener.close();
    }

    /// The next want; `None` at the end. The last one is `done`. While there is none, nothing is `held`.
    fn next(self: &Arc<Self>, done: Option<Done>, held: &mut Held) -> Option<Want> {
        let mut state = self.lock();
        if let Some(done) = done {
            state.enter(done);
        }
        loop {
            if state.is_stopped {
                return None;
            }
            if self.is_full(&state) {
                state.was_full |= state.trial.is_none();
                self.let_go(held);
                state = wait(&self.room, state);
                continue;
            }
            let Some(want) = state.wants.pop_front() else {
                if state.is_complete {
                    return None;
                }
                self.let_go(held);
                state = wait(&self.more, state);
                continue;
            };
            state.working.push(want.file);
            state.taken += want.pages();
            if state.wants.len() + 1 == WAITING {
                self.room.notify_all();
            }
            self.start_one(&mut state);
            return Some(want);
        }
    }
}

impl State {
    #[cfg(test)]
    pub(crate) fn is_on_trial(&self) -> bool {
        self.trial.is_some()
    }

    /// Whether the budget was ever used up.
    pub(crate) fn was_full(&self) -> bool {
        self.was_full
    }

    fn enter(&mut self, done: Done) {
        if let Some(place) = self.working.iter().position(|file| *file == done.file) {
            self.working.swap_remove(place);
        }
        self.issued.extend(done.issued);
        self.names.extend(done.name);
        self.differences.extend(done.differences);
        self.devices.extend(done.device);
    }
}

fn wait<'a>(what: &Condvar, state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
    let waited = what.wait_timeout(state, LOOK);
    waited.unwrap_or_else(PoisonError::into_inner).0
}

/// One thread.
struct Worker {
    shared: Arc<Shared>,
    held: Held,
    /// Files of which nothing is fetched, and it was said.
    met: FxHashSet<FileId>,
    /// How hints are given together; `None` before the first, and where the kernel offers no way.
    together: Option<Together>,
    /// Whether hints given together are of use.
    is_heard: bool,
}

/// What a thread has open as long as there are wants for it.
#[derive(Default)]
struct Held {
    /// The file of the last want.
    open: Option<(FileId, Open)>,
}

/// A file that is open.
struct Open {
    fd: OwnedFd,
    facts: FileFacts,
}

impl Worker {
    fn new(shared: Arc<Shared>) -> Self {
        Self {
            shared,
            held: Held::default(),
            met: FxHashSet::default(),
            together: None,
            is_heard: true,
        }
    }

    fn work(mut self) {
        let mut done = None;
        while let Some(want) = self.shared.next(done.take(), &mut self.held) {
            let mut result = Done::of(want.file);
            match want.what {
                What::Pages(pages) => self.fetch(want.file, pages, &mut result),
                What::Name(kind) => {
                    self.held.open = None;
                    self.look_up(want.file, kind, &mut result);
                }
                What::Together(all) => self.fetch_together(all, &mut result),
            }
            done = Some(result);
        }
        self.shared.let_go(&mut self.held);
    }

    fn look_up(&mut self, id: FileId, kind: Kind, done: &mut Done) {
        let Some(meta) = self.shared.files.file(id) else {
            return;
        };
        let Ok(place) = Place::find(&meta.path) else {
            return;
        };
        let mut waited = place.was_waited_for;
        if kind == Kind::List {
            waited |= place.list(ENTRIES).unwrap_or(false);
        }
        done.name = Some((id, waited));
    }

    /// Opens a file.
    fn open(&mut self, id: FileId, done: &mut Done) -> Option<Open> {
        let meta = self.shared.files.file(id)?;
        match self.shared.opener.open(&meta.path) {
            Ok((fd, facts)) => {
                let differs = difference(meta, &facts).map(|differs| (id, differs));
                done.differences.extend(differs);
                done.device = Some(facts.dev);
                Some(Open { fd, facts })
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

    /// Requests pages of small files in one call, until the end of which the kernel keeps back what it has for the device and joins
    /// what lies next to each other.
    fn fetch_together(&mut self, all: Vec<(FileId, Range<u64>)>, done: &mut Done) {
        self.held.open = None;
        let mut parts = Vec::new();
        for (id, pages) in all {
            let Some(open) = self.open(id, done) else {
                continue;
            };
            let end = pages.end.min(open.facts.size.div_ceil(PAGE));
            if pages.start >= end {
                continue;
            }
            if !self.shared.is_kept(id, &open, pages.start, done) {
                self.refuse(id, UNKEPT, done);
                continue;
            }
            let missing = missing(&open.fd, &open.facts, &(pages.start..end));
            if !missing.is_empty() {
                parts.push((id, open, missing));
            }
        }
        // The kernel joins a request to the one before it alone.
        parts.sort_unstable_by_key(|(_, open, _)| open.facts.ino);
        let joined = self.is_heard && parts.len() > 1 && self.hint_together(&parts);
        for (id, open, missing) in parts {
            for part in missing {
                if joined || cache::will_need(&open.fd, open.bytes(&part)).is_ok() {
                    done.issued.push((id, part));
                }
            }
        }
    }

    /// Hints about all these parts at once; whether anything came of it.
    fn hint_together(&mut self, parts: &[(FileId, Open, Vec<Range<u64>>)]) -> bool {
        if self.together.is_none() {
            self.together = Together::new(LARGEST).ok();
        }
        let Some(together) = &mut self.together else {
            self.is_heard = false;
            return false;
        };
        let each = parts.iter().flat_map(|(_, open, missing)| {
            missing
                .iter()
                .map(|part| (open.fd.as_fd(), open.bytes(part)))
        });
        let each: Vec<_> = each.collect();
        if together.will_need(&each).is_err() {
            self.together = None;
            self.is_heard = false;
            return false;
        }
        // A file system may ignore such hints.
        let last = each.last();
        self.is_heard = last.is_some_and(|(fd, bytes)| {
            cache::stat(fd, bytes.clone()).is_ok_and(|now| now.cached > 0)
        });
        self.is_heard
    }

    fn fetch(&mut self, id: FileId, pages: Range<u64>, done: &mut Done) {
        if self.held.open.as_ref().is_none_or(|(last, _)| *last != id) {
            self.held.open = None;
            self.held.open = self.open(id, done).map(|open| (id, open));
        }
        let Some((_, open)) = &self.held.open else {
            return;
        };
        let end = pages.end.min(open.facts.size.div_ceil(PAGE));
        if pages.start >= end {
            return;
        }
        if !self.shared.is_kept(id, open, pages.start, done) {
            self.refuse(id, UNKEPT, done);
            return;
        }
        for part in missing(&open.fd, &open.facts, &(pages.start..end)) {
            if cache::will_need(&open.fd, open.bytes(&part)).is_ok() {
                done.issued.push((id, part));
            }
        }
    }
}

impl Done {
    fn of(file: FileId) -> Self {
        Self {
            file,
            issued: Vec::new(),
            name: None,
            differences: Vec::new(),
            device: None,
        }
    }
}

impl Open {
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

/// The parts of these pages that are neither in memory nor on their way, as far as the kernel tells this user. Of a file that it
/// tells nothing of, the first page is read without waiting, and stands for all.
pub(crate) fn missing(fd: &OwnedFd, facts: &FileFacts, pages: &Range<u64>) -> Vec<Range<u64>> {
    let mut parts = Vec::new();
    let is_told = !cache::is_hidden(fd, facts.dev) && split(fd, pages.clone(), &mut parts).is_ok();
    if is_told {
        return parts;
    }
    parts.clear();
    if by_map(fd, facts, pages, &mut parts).is_ok() {
        return parts;
    }
    let first = pages.start * PAGE;
    let _ = cache::advise_random(fd);
    match cache::was_uptodate(fd, first) {
        Ok(true) => Vec::new(),
        _ => vec![pages.clone()],
    }
}

/// Halves a range until its parts are wholly missing or wholly there.
fn split(fd: &OwnedFd, pages: Range<u64>, parts: &mut Vec<Range<u64>>) -> io::Result<()> {
    let count = pages.end - pages.start;
    let cached = cache::stat(fd, pages.start * PAGE..pages.end * PAGE)?.cached;
    if cached == 0 {
        add(parts, pages);
    } else if cached < count {
        let middle = pages.start + count / 2;
        split(fd, pages.start..middle, parts)?;
        split(fd, middle..pages.end, parts)?;
    }
    Ok(())
}

/// Page by page, by `mincore`, where that tells this user the truth.
fn by_map(
    fd: &OwnedFd,
    facts: &FileFacts,
    pages: &Range<u64>,
    parts: &mut Vec<Range<u64>>,
) -> io::Result<()> {
    if !Residency::permitted(fd.as_fd(), facts.uid)? {
        return Err(io::ErrorKind::PermissionDenied.into());
    }
    let mut there = Vec::new();
    Residency::new(fd, facts.size)?.uptodate(pages.start * PAGE..pages.end * PAGE, &mut there)?;
    for (page, _) in pages.clone().zip(there).filter(|(_, there)| !there) {
        add(parts, page..page + 1);
    }
    Ok(())
}

/// Appends a part, joined to the last if it follows it.
fn add(parts: &mut Vec<Range<u64>>, part: Range<u64>) {
    match parts.last_mut() {
        Some(last) if last.end == part.start => last.end = part.end,
        _ => parts.push(part),
    }
}
