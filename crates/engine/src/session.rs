//! An engine on its own thread, in real time.
//!
//! The thread that watches the program passes its observations on and never waits for the engine. The engine wakes for them, or by its own
//! timer: a program that computes for long and then reads in a burst finds its pages in memory (AASFP §5.2's timer).

use std::collections::VecDeque;
use std::fs;
use std::mem::{self, ManuallyDrop};
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock, PoisonError, TryLockError};
use std::time::{Duration, Instant};

use foreread_backend::Backend;
use foreread_plan::{FileId, FileMeta, Seen};
use foreread_sources::Source;

use crate::sync::{
    AtomicBool, AtomicU64, AtomicUsize, Builder, JoinHandle, MODELLED, Mutex, MutexGuard, Ordering,
    park, park_timeout, sleep, yield_now,
};
use crate::{Engine, Ledger, Report};

#[cfg(all(test, loom))]
mod models;

/// The engine's timer while requests are under way: three reads of a local SSD.
const BUSY: Duration = Duration::from_micros(200);
/// The engine's timer while nothing is under way: the interval at which files are checked.
const IDLE: Duration = Duration::from_millis(5);
/// Duration of an engine's round up to which sleeping and being woken would cost more.
const AT_HAND: Duration = Duration::from_micros(300);
/// Time for which the end of a session waits for an engine that may be blocked in a file system. It is the same as the helper's at the end
/// of a run, because a caller may notice longer waits.
const PARTING: Duration = Duration::from_millis(50);
/// The same for an engine that lacks a processor: the account of such an engine can be closed, so waiting longer pays.
const STARVED: Duration = Duration::from_secs(2);
/// Observations handled in one step: as many as the disclosures in the first, so that the queue is filled as fast as it is read.
const AT_ONCE: usize = if MODELLED { 1 } else { 256 };
/// Bytes of stack of the engine's thread: the standard library's default, whatever the environment says (`RUST_MIN_STACK`).
const STACK: usize = 2 << 20;

/// A message to the engine.
enum Notice {
    /// An observation.
    Seen(Seen),
    /// A file that no plan names.
    File(FileId, Box<FileMeta>),
    /// An additional source.
    Strand(&'static str, Box<dyn Source>),
    /// Pages that will not be read after all.
    Unread(FileId, Range<u64>),
    /// Pages that are asked for anew, of another number.
    TakenBack(FileId, Range<u64>),
    /// Pages that are certain to be read.
    ComeTrue(FileId, Range<u64>),
    /// From now on the program is not observed.
    Nothing,
    /// The program's reads of this file are unknown, except for observed ones.
    Doubt(FileId),
}

impl Notice {
    /// Number of observations in it.
    fn weight(&self) -> usize {
        match self {
            Self::Seen(Seen::Read(sequence)) => sequence.count() as usize,
            _ => 1,
        }
    }
}

/// A running session.
pub struct Session {
    shared: Arc<Shared>,
    /// `None` only while the session is ended.
    thread: Option<JoinHandle<Option<Report>>>,
}

/// State shared by both sides of a session.
struct Shared {
    /// Messages that the engine has not handled yet.
    told: Mutex<VecDeque<Notice>>,
    /// Reads and other observations that the engine has not handled yet.
    backlog: AtomicUsize,
    /// True if the engine has requests in flight or decisions to make.
    busy: AtomicBool,
    /// True if the program's next read is foreseen.
    foreseen: AtomicBool,
    /// True if nothing is left to fetch, as far as the engine knows.
    rests: AtomicBool,
    /// The kernel's account of the engine's thread, below `/proc`.
    task: OnceLock<PathBuf>,
    /// Waiting of all reads that needed their device, avoided or not, in ns.
    gained: AtomicU64,
    ledger: Mutex<Ledger>,
    /// The ledger of each strand.
    ledgers: Mutex<Vec<Ledger>>,
    /// The engine, from its creation to the end of the session.
    desk: Mutex<Option<Box<dyn Work>>>,
    dismissed: AtomicBool,
}

impl Session {
    /// Starts a session with the engine that `make` creates on its own thread, so that the caller does not wait for the creation.
    /// Observation times count from `start`.
    ///
    /// # Errors
    /// When the thread cannot be started.
    pub fn start<B: Backend + 'static>(
        make: impl FnOnce() -> Engine<B> + Send + 'static,
        start: Instant,
    ) -> std::io::Result<Self> {
        let shared = Arc::new(Shared {
            told: Mutex::default(),
            backlog: AtomicUsize::new(0),
            busy: AtomicBool::new(true),
            foreseen: AtomicBool::new(true),
            rests: AtomicBool::new(false),
            task: OnceLock::new(),
            gained: AtomicU64::new(0),
            ledger: Mutex::default(),
            ledgers: Mutex::default(),
            desk: Mutex::default(),
            dismissed: AtomicBool::new(false),
        });
        let seen_by_engine = Arc::clone(&shared);
        let thread = Builder::new()
            .name("foreread-engine".into())
            .stack_size(STACK)
            .spawn(move || {
                if let Ok(task) = fs::read_link("/proc/thread-self") {
                    seen_by_engine.task.get_or_init(|| task);
                }
                let mut shift: Box<dyn Work> = Box::new(Shift::begin(make(), start));
                shift.tell(&seen_by_engine, false);
                if let Ok(mut desk) = seen_by_engine.desk.lock() {
                    *desk = Some(shift);
                }
                work(&seen_by_engine)
            })?;
        Ok(Self {
            shared,
            thread: Some(thread),
        })
    }

    /// Passes an observation on. The engine receives it when its timer ends, and at the next [`Session::wake`].
    pub fn see(&self, seen: Seen) {
        if let Seen::Read(sequence) = seen {
            // Split into pieces of one step: otherwise the engine would do nothing else for long.
            for piece in sequence.pieces(AT_ONCE as u16) {
                self.add(Notice::Seen(Seen::Read(piece)));
            }
        } else {
            self.add(Notice::Seen(seen));
        }
    }

    /// Adds a file that no plan names, in order with the observations.
    pub fn add_file(&self, file: FileId, meta: FileMeta) {
        self.add(Notice::File(file, Box::new(meta)));
    }

    /// Withdraws the prediction of these pages, in order with the observations.
    pub fn give_up(&self, file: FileId, pages: Range<u64>) {
        self.add(Notice::Unread(file, pages));
    }

    /// Takes back the prediction of these pages, because they are requested again under another number of their file. Whether they are read
    /// is unknown.
    pub fn take_back(&self, file: FileId, pages: Range<u64>) {
        self.add(Notice::TakenBack(file, pages));
    }

    /// Confirms that these pages will be read, some of them later, in order with the observations.
    pub fn come_true(&self, file: FileId, pages: Range<u64>) {
        self.add(Notice::ComeTrue(file, pages));
    }

    /// Adds a source, in order with the observations.
    pub fn add_strand(&self, name: &'static str, source: Box<dyn Source>) {
        self.add(Notice::Strand(name, source));
    }

    /// The program is not observed from now on, or was not all the time: it may read pages unseen.
    pub fn look_away(&self) {
        self.add(Notice::Nothing);
    }

    /// Notes that the program's reads of this file are unknown, except for observed ones: its touches are sampled, and the last may follow
    /// the last sample.
    pub fn doubt(&self, file: FileId) {
        self.add(Notice::Doubt(file));
    }

    fn add(&self, notice: Notice) {
        // An engine that has died takes none.
        if self.thread.as_ref().is_some_and(|one| !one.is_finished()) {
            let weight = notice.weight();
            self.shared.backlog.fetch_add(weight, Ordering::Relaxed);
            lock(&self.shared.told).push_back(notice);
        }
    }

    /// Wakes the engine to handle its sources and observations now, before its timer ends.
    pub fn wake(&self) {
        if let Some(thread) = &self.thread {
            thread.thread().unpark();
        }
    }

    /// True if the engine has requests in flight or decisions to make. If not, the program waits for its own requests only, and reads may
    /// be reported late.
    pub fn is_busy(&self) -> bool {
        self.shared.busy.load(Ordering::Relaxed)
    }

    /// True if the program's next read is foreseen, as far as the engine has observed ([`Engine::is_foreseen`]).
    pub fn is_foreseen(&self) -> bool {
        self.shared.foreseen.load(Ordering::Relaxed)
    }

    /// True if the engine has nothing left to fetch, as far as it knows. Then its timer is early enough for observations, and waking it
    /// would only cost the program processor time.
    pub fn rests(&self) -> bool {
        self.shared.rests.load(Ordering::Relaxed)
    }

    /// The account so far: not closed while pages are issued and unread.
    pub fn ledger(&self) -> Ledger {
        *lock(&self.shared.ledger)
    }

    /// Waiting of all reads that needed their device, avoided or not, in ns.
    pub fn gained(&self) -> u64 {
        self.shared.gained.load(Ordering::Relaxed)
    }

    /// The account of each strand so far, in the order in which they were added.
    pub fn ledgers(&self) -> Vec<Ledger> {
        lock(&self.shared.ledgers).clone()
    }

    /// Observations that the engine has not handled yet. If they pile up, the program reads faster than any device, and can be left
    /// to itself for a while.
    pub fn backlog(&self) -> usize {
        self.shared.backlog.load(Ordering::Relaxed)
    }

    /// End the session and close its account, on its own thread, which is gone then with all it held. `None` if it
    /// has died, or is stuck in a file system that does not answer.
    pub fn finish(mut self) -> Option<Report> {
        self.dismiss();
        let thread = self.thread.take()?;
        let begun = Instant::now();
        while !thread.is_finished() {
            if self.shared.is_stuck(begun) {
                return None;
            }
            sleep(AT_HAND);
        }
        thread.join().ok()?
    }

    /// The same as [`Session::finish`], without a time limit: for measurements of a device, which may be busy with writes of others. `None`
    /// if the session has died.
    pub fn finish_in_any_time(mut self) -> Option<Report> {
        self.dismiss();
        self.thread.take()?.join().ok()?
    }

    /// The same as [`Session::finish`] on the caller's thread, for a process that is about to end: the engine's thread is mostly asleep and
    /// would have to wake first. The session's threads and memory end with the process.
    ///
    /// Use it only if this thread and the one that started the session share their descriptors.
    pub fn account(self) -> Option<Report> {
        // Or its end would wake the thread after all.
        let session = ManuallyDrop::new(self);
        let thread = session.thread.as_ref()?;
        let begun = Instant::now();
        let mut work = loop {
            match session.shared.desk.try_lock() {
                Ok(mut desk) => {
                    if let Some(work) = desk.take() {
                        break work;
                    }
                }
                Err(TryLockError::WouldBlock) => {}
                // An engine that panicked has no usable result.
                Err(TryLockError::Poisoned(_)) => return None,
            }
            if thread.is_finished() || session.shared.is_stuck(begun) {
                return None;
            }
            if begun.elapsed() < AT_HAND {
                yield_now();
            } else {
                sleep(AT_HAND);
            }
        };
        let ended = catch_unwind(AssertUnwindSafe(|| work.end(&session.shared)));
        mem::forget(work);
        ended.ok()
    }

    /// Makes the thread close the account and end.
    fn dismiss(&self) {
        self.shared.dismissed.store(true, Ordering::Relaxed);
        self.wake();
    }
}

impl Shared {
    /// True if the caller, who has waited since `begun`, should give up the engine's thread: it is blocked, or has lacked a processor for
    /// too long.
    fn is_stuck(&self, begun: Instant) -> bool {
        // The models have no clock.
        let waited = if MODELLED {
            Duration::ZERO
        } else {
            begun.elapsed()
        };
        waited > STARVED || waited > PARTING && self.task.get().is_none_or(|task| is_asleep(task))
    }
}

/// True if the thread waits for something other than a processor, as reported by the kernel.
fn is_asleep(task: &Path) -> bool {
    let Ok(stat) = fs::read_to_string(Path::new("/proc").join(task).join("stat")) else {
        return true;
    };
    // The name may hold anything, parentheses too.
    let state = stat.rsplit_once(')').map(|(_, fields)| fields.trim_start());
    !state.is_some_and(|state| state.starts_with('R'))
}

impl Drop for Session {
    fn drop(&mut self) {
        self.dismiss();
    }
}

/// The work of the engine's thread, repeated; and once more by the thread that ends the session.
trait Work: Send {
    /// Handles the observations and does the work that is due. Returns the time until more work is due; `None` if there is none before the
    /// next observation.
    fn round(&mut self, shared: &Shared) -> Option<Duration>;
    /// Publishes the engine's state, and whether it is `busy`.
    fn tell(&mut self, shared: &Shared, busy: bool);
    /// Handles the remaining observations and closes the account.
    fn end(&mut self, shared: &Shared) -> Report;
}

/// An engine at work.
struct Shift<B> {
    engine: Engine<B>,
    start: Instant,
    /// Notices received and not handled yet.
    taken: VecDeque<Notice>,
    /// Rounds in a row in which nothing was observed and nothing was under way.
    idle: u32,
}

impl<B: Backend> Shift<B> {
    /// Begins to read the plan, and gives the first hints if the first batch has any; a whole step follows.
    fn begin(mut engine: Engine<B>, start: Instant) -> Self {
        let now = start.elapsed().as_nanos() as u64;
        engine.step(now);
        let taken = VecDeque::new();
        Self {
            engine,
            start,
            taken,
            idle: 0,
        }
    }

    /// Time for which the engine may sleep after this many idle rounds: with a calm of 10, from 50 ms to 0.4 s. No one waits for the result
    /// of such a round, and each costs 0.1 to 0.2 ms on a virtual processor. An engine that follows one program does not slow down.
    fn pause(calm: u32, idle: u32) -> Duration {
        IDLE * calm * (1 << idle.min(calm.ilog2()))
    }

    fn now(&self) -> u64 {
        self.start.elapsed().as_nanos() as u64
    }

    fn take_over(&mut self, shared: &Shared) {
        if self.taken.is_empty() {
            mem::swap(&mut self.taken, &mut *lock(&shared.told));
        }
    }

    /// Handles the next observations. True if there were any.
    fn look(&mut self, shared: &Shared) -> bool {
        if self.taken.is_empty() {
            return false;
        }
        // Pages issued before these reads must be known before the reads are accounted for.
        let now = self.now();
        self.engine.collect(now);
        let mut count = 0;
        while count < AT_ONCE
            && let Some(notice) = self.taken.pop_front()
        {
            count += notice.weight();
            match notice {
                Notice::Seen(seen) => self.engine.see(&seen),
                Notice::File(file, meta) => self.engine.add_file(file, *meta),
                Notice::Strand(name, source) => self.engine.add_strand(name, source),
                Notice::Unread(file, pages) => self.engine.give_up(file, &pages),
                Notice::TakenBack(file, pages) => self.engine.take_back(file, &pages),
                Notice::ComeTrue(file, pages) => self.engine.come_true(file, &pages),
                Notice::Doubt(file) => self.engine.doubt_file(file),
                Notice::Nothing => self.engine.look_away(),
            }
        }
        shared.backlog.fetch_sub(count, Ordering::Relaxed);
        true
    }
}

impl<B: Backend> Work for Shift<B> {
    fn round(&mut self, shared: &Shared) -> Option<Duration> {
        self.take_over(shared);
        let seen = self.look(shared);
        let busy = self.engine.step(self.now());
        self.tell(shared, busy);
        let calm = self.engine.calm();
        if seen || busy {
            self.idle = 0;
        }
        match (self.taken.is_empty(), busy) {
            (false, _) => Some(Duration::ZERO),
            (true, true) => Some(BUSY * calm),
            (true, false) => {
                let pause = Self::pause(calm, self.idle);
                self.idle = self.idle.saturating_add(1);
                (!self.engine.is_quiet()).then_some(pause)
            }
        }
    }

    fn tell(&mut self, shared: &Shared, busy: bool) {
        shared.busy.store(busy, Ordering::Relaxed);
        let foreseen = self.engine.is_foreseen();
        shared.foreseen.store(foreseen, Ordering::Relaxed);
        shared.rests.store(self.engine.rests(), Ordering::Relaxed);
        let gained = self.engine.gained();
        shared.gained.store(gained, Ordering::Relaxed);
        *lock(&shared.ledger) = self.engine.ledger();
        let mut ledgers = lock(&shared.ledgers);
        ledgers.clear();
        ledgers.extend(self.engine.ledgers());
    }

    fn end(&mut self, shared: &Shared) -> Report {
        while self.look(shared) {}
        self.take_over(shared);
        // The program has ended: only the account remains.
        self.engine.close();
        while self.look(shared) {}
        let now = self.now();
        self.engine.finish(now)
    }
}

/// Works until the session ends, here or in another thread that has taken the engine.
fn work(shared: &Shared) -> Option<Report> {
    loop {
        let mut desk = shared.desk.lock().ok()?;
        let work = desk.as_mut()?;
        if shared.dismissed.load(Ordering::Relaxed) {
            let mut work = desk.take()?;
            return Some(work.end(shared));
        }
        let pause = work.round(shared);
        drop(desk);
        match pause {
            Some(Duration::ZERO) => {}
            Some(pause) => park_timeout(pause),
            None => park(),
        }
    }
}

/// A lock whose holder panicked guards data that is still consistent.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    fn an_idle_engine_looks_less_and_less_often_the_calmer_it_is() {
        let pause = Shift::<foreread_backend::NullBackend>::pause;
        assert_eq!([0, 1, 1000].map(|idle| pause(1, idle)), [IDLE; 3]);
        let calm = [0, 1, 2, 3, 1000].map(|idle| pause(10, idle).as_millis());
        assert_eq!(calm, [50, 100, 200, 400, 400]);
    }
}
