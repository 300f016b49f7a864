//! The threads that bring wants into memory.
//!
//! [`Fetching`] decides the next request, and a [`Worker`] makes it. Each thread has its own worker; the state is shared.
//!
//! Invariant: nobody waits for a thread that a file system holds up.
//!
//! Data flow: wants → [`Shared::add`] → [`Fetching`] → threads → hints; their results → [`Fetching`].

use std::ops::Range;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use foreread_plan::FileId;
use foreread_sys::thread;

use crate::fetch::{Fetching, Next, PARTING};
use crate::system::{Common, Kernel, now};
use crate::wants::{Want, What};
use crate::worker::{Done, Task, Worker};
use crate::{Cache, Files};

/// Bytes of stack of a thread.
const STACK: usize = 256 << 10;
/// Interval at which a thread that waits for the program to read requested pages checks whether the run is over.
const LOOK: Duration = Duration::from_millis(100);

/// State shared by the threads.
pub(crate) struct Shared {
    files: Arc<dyn Files>,
    state: Mutex<Fetching>,
    /// There are wants, or an end.
    more: Condvar,
    /// There is room for wants, or for pages.
    room: Condvar,
    known: Arc<Common>,
}

impl Shared {
    pub(crate) fn new(files: Arc<dyn Files>, state: Fetching) -> Self {
        Self {
            files,
            state: Mutex::new(state),
            more: Condvar::new(),
            room: Condvar::new(),
            known: Arc::default(),
        }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Fetching> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds wants when there is room. False if no more are needed.
    pub(crate) fn add(self: &Arc<Self>, wants: &mut Vec<Want>) -> bool {
        let mut state = self.lock();
        while !state.has_room() {
            state = wait(&self.room, state);
        }
        if state.is_stopped() {
            return false;
        }
        state.add(wants, &*self.files);
        self.start_one(&mut state);
        drop(state);
        self.more.notify_all();
        true
    }

    /// Starts one more thread if it has something to do.
    fn start_one(self: &Arc<Self>, state: &mut Fetching) {
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

    /// The next request; `None` at the end. `done` is the result of the previous one. While it waits, the worker has no open file.
    fn next(self: &Arc<Self>, done: Option<Done>, worker: &mut Worker<Kernel>) -> Option<Task> {
        let mut state = self.lock();
        if done.is_some_and(|done| state.enter(done)) {
            self.more.notify_one();
            return None;
        }
        loop {
            let had_no_room = !state.has_room();
            let is_full = self.files.cache().is_some_and(Cache::is_full);
            let next = match is_full && !state.is_stopped() {
                true => Next::AwaitRoom,
                false => state.next(),
            };
            let wake = match next {
                Next::End => {
                    self.room.notify_all();
                    return None;
                }
                Next::Work(task) => {
                    if had_no_room && state.has_room() {
                        self.room.notify_all();
                    }
                    self.pass_on(&task.want);
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

    /// Passes pages for a cache on to it: under the lock, so that they arrive in the program's order. If one request came last because its
    /// thread was delayed, the cache would be full before, of pages that the program reads after it.
    fn pass_on(&self, want: &Want) {
        if let (What::Cached(pages), Some(cache)) = (&want.what, self.files.cache()) {
            cache.bring(want.file, pages.clone());
        }
    }

    /// All wants of the plan have been added.
    pub(crate) fn complete(&self) {
        self.lock().complete();
        self.more.notify_all();
    }

    /// Ends fetching.
    pub(crate) fn stop(&self) {
        self.lock().stop();
        if let Some(cache) = self.files.cache() {
            cache.stop();
        }
        self.more.notify_all();
        self.room.notify_all();
    }

    /// Stops, and waits until requests under way are entered. Requests that a file system holds up are reported as such.
    pub(crate) fn settle(&self) -> MutexGuard<'_, Fetching> {
        self.stop();
        let begun = Instant::now();
        let mut state = self.lock();
        while !state.is_settled() && begun.elapsed() < PARTING {
            let waited = self.room.wait_timeout(state, PARTING / 50);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        state.part();
        let brought = self.files.cache().map(Cache::brought);
        state.issued.extend(brought.unwrap_or_default());
        state
    }

    /// The program has read these pages; appends those that it had not read before, and says whether all wants of the plan are known.
    pub(crate) fn read(&self, file: FileId, pages: Range<u64>, new: &mut Vec<Range<u64>>) -> bool {
        let mut state = self.lock();
        state.read.fresh(file, pages, new);
        state.is_complete()
    }

    /// The program has read this many planned pages.
    pub(crate) fn passed(&self, pages: u64) {
        let was_full = self.lock().passed(pages);
        if was_full {
            self.room.notify_all();
        }
    }

    /// The program has waited for pages that it had read before.
    pub(crate) fn waited_again(&self) {
        self.lock().waited_again();
    }

    /// The plan is on trial no more.
    pub(crate) fn trust(&self) {
        let was_on_trial = self.lock().trust();
        if was_on_trial {
            self.room.notify_all();
        }
    }

    /// True if all wants are finished, fetched or not.
    pub(crate) fn is_done(&self) -> bool {
        self.lock().is_done()
    }

    /// True if there is any thread.
    pub(crate) fn has_threads(&self) -> bool {
        self.lock().has_threads()
    }

    /// Waits until all wants have been seen to.
    pub(crate) fn await_done(&self) -> MutexGuard<'_, Fetching> {
        let mut state = self.lock();
        while !state.is_done() {
            state = wait(&self.room, state);
        }
        state
    }
}

fn wait<'a>(what: &Condvar, state: MutexGuard<'a, Fetching>) -> MutexGuard<'a, Fetching> {
    let waited = what.wait_timeout(state, LOOK);
    waited.unwrap_or_else(PoisonError::into_inner).0
}
