//! An engine on its own thread, in real time.
//!
//! The thread that watches the program hands over what it saw and never waits for the engine;
//! the engine wakes for that, or by its own timer: a program that computes for long and then
//! reads in a burst finds its pages there (AASFP §5.2's timer).

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use foreread_backend::Backend;
use foreread_plan::Access;

use crate::{Engine, Ledger, Phase, Report};

/// The engine's timer while requests are under way.
const BUSY: Duration = Duration::from_micros(200);
/// The engine's timer while nothing is.
const IDLE: Duration = Duration::from_millis(5);
/// How long an engine with nothing left to do takes to end: less than to sleep meanwhile, and to be woken.
const AT_HAND: Duration = Duration::from_micros(300);
/// Observations taken in one step: the queue has to be filled as fast as it is read.
const AT_ONCE: usize = 256;

/// What the program was seen to read, or to do.
enum Seen {
    /// An access to a planned file.
    Planned(Access),
    /// An access to any other.
    Stray(Access),
    /// That it waits for its device again.
    Waiting,
}

/// A running session.
pub struct Session {
    shared: Arc<Shared>,
    /// `None` only while the session is ended.
    thread: Option<JoinHandle<Report>>,
}

/// What both sides of a session see.
struct Shared {
    /// Observations that the engine has not taken yet.
    seen: Mutex<VecDeque<Seen>>,
    /// Observations that the engine has not come to yet.
    backlog: AtomicUsize,
    phase: AtomicU8,
    /// Whether the engine has anything under way or to decide.
    busy: AtomicBool,
    ledger: Mutex<Ledger>,
    closing: AtomicBool,
}

impl Session {
    /// Start following: `start` is the instant that observations' times count from.
    ///
    /// # Errors
    /// When the thread cannot be started.
    pub fn start<B: Backend + 'static>(engine: Engine<B>, start: Instant) -> std::io::Result<Self> {
        let shared = Arc::new(Shared {
            seen: Mutex::default(),
            backlog: AtomicUsize::new(0),
            phase: AtomicU8::new(code(Phase::Ahead)),
            busy: AtomicBool::new(true),
            ledger: Mutex::default(),
            closing: AtomicBool::new(false),
        });
        let seen_by_engine = Arc::clone(&shared);
        let thread = std::thread::Builder::new()
            .name("foreread-engine".into())
            .spawn(move || run(engine, &seen_by_engine, start))?;
        Ok(Self {
            shared,
            thread: Some(thread),
        })
    }

    /// The program read this extent of a planned file. The engine sees it when its timer ends, and at the
    /// next [`Session::wake`].
    pub fn observe(&self, access: Access) {
        self.add(Seen::Planned(access));
    }

    /// The program read a file that is not in the plan; seen as [`Session::observe`]'s are.
    pub fn stray(&self, access: Access) {
        self.add(Seen::Stray(access));
    }

    /// Have the engine follow again a program that it let go as [`Phase::Hot`].
    pub fn resume(&self) {
        self.add(Seen::Waiting);
        // Not when the engine gets there: until then the phase would say that nobody need be watched.
        let phase = code(Phase::Lost);
        self.shared.phase.store(phase, Ordering::Relaxed);
        self.wake();
    }

    fn add(&self, seen: Seen) {
        // An engine that has died takes none.
        if self.thread.as_ref().is_some_and(|one| !one.is_finished()) {
            self.shared.backlog.fetch_add(1, Ordering::Relaxed);
            lock(&self.shared.seen).push_back(seen);
        }
    }

    /// Have the engine look at its source, and at what was observed, now and not when its timer ends.
    pub fn wake(&self) {
        if let Some(thread) = &self.thread {
            thread.thread().unpark();
        }
    }

    /// What the session is doing.
    pub fn phase(&self) -> Phase {
        phase(self.shared.phase.load(Ordering::Relaxed))
    }

    /// Whether the engine has anything under way or to decide: if not, what the program waits for is the kernel's,
    /// and it is early enough to tell of it in a while.
    pub fn is_busy(&self) -> bool {
        self.shared.busy.load(Ordering::Relaxed)
    }

    /// The account so far: not closed while pages are issued and unread.
    pub fn ledger(&self) -> Ledger {
        *lock(&self.shared.ledger)
    }

    /// Observations that the engine has not come to yet: where they pile up, the program reads faster than any
    /// device and can be left to itself for a while.
    pub fn backlog(&self) -> usize {
        self.shared.backlog.load(Ordering::Relaxed)
    }

    /// End the session and close its account. `None` if the engine's thread has died.
    pub fn finish(mut self) -> Option<Report> {
        self.close();
        let thread = self.thread.take()?;
        let until = Instant::now() + AT_HAND;
        while !thread.is_finished() && Instant::now() < until {
            std::thread::yield_now();
        }
        thread.join().ok()
    }

    fn close(&self) {
        self.shared.closing.store(true, Ordering::Release);
        self.wake();
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.close();
    }
}

fn run<B: Backend>(mut engine: Engine<B>, shared: &Shared, start: Instant) -> Report {
    let now = || start.elapsed().as_nanos() as u64;
    let mut taken = VecDeque::new();
    let mut closing = false;
    engine.survey();
    // The first hints; what a whole step looks at comes right after.
    engine.step(now());
    loop {
        let busy = engine.step(now());
        shared.busy.store(busy, Ordering::Relaxed);
        let phase = code(engine.phase());
        shared.phase.store(phase, Ordering::Relaxed);
        *lock(&shared.ledger) = engine.ledger();
        if taken.is_empty() {
            if !closing {
                std::thread::park_timeout(if busy { BUSY } else { IDLE });
            }
            // Looked at first: nothing is observed after it.
            closing = shared.closing.load(Ordering::Acquire);
            std::mem::swap(&mut taken, &mut *lock(&shared.seen));
            if closing {
                // The program has ended: what is left is only to be accounted for.
                engine.close();
                if taken.is_empty() {
                    break;
                }
            }
        }
        // What was issued before these reads has to be known before they are accounted for.
        engine.collect(now());
        let count = taken.len().min(AT_ONCE);
        for seen in taken.drain(..count) {
            match seen {
                Seen::Planned(access) => engine.observe(&access),
                Seen::Stray(access) => engine.stray(&access),
                Seen::Waiting => engine.resume(now()),
            }
        }
        shared.backlog.fetch_sub(count, Ordering::Relaxed);
    }
    engine.finish(now())
}

/// A lock whose holder panicked guards data that is still whole.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

const PHASES: [Phase; 5] = [
    Phase::Ahead,
    Phase::Lost,
    Phase::GaveUp,
    Phase::Hot,
    Phase::Finished,
];

fn code(phase: Phase) -> u8 {
    PHASES.iter().position(|&one| one == phase).unwrap_or(0) as u8
}

fn phase(code: u8) -> Phase {
    PHASES
        .get(usize::from(code))
        .copied()
        .unwrap_or(Phase::Ahead)
}
