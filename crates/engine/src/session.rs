//! An engine on its own thread, in real time.
//!
//! The thread that watches the program hands over what it saw and never waits for the engine;
//! the engine wakes for that, or by its own timer: a program that computes for long and then
//! reads in a burst finds its pages there (AASFP §5.2's timer).

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use foreread_backend::Backend;
use foreread_plan::Access;

use crate::{Engine, Ledger, Phase, Report};

/// The engine's timer while requests are under way.
const BUSY: Duration = Duration::from_micros(200);
/// The engine's timer while nothing is.
const IDLE: Duration = Duration::from_millis(5);

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
    seen: Sender<Vec<Seen>>,
    batch: Vec<Seen>,
    shared: Arc<Shared>,
    thread: JoinHandle<Report>,
}

/// What both sides of a session see.
struct Shared {
    phase: AtomicU8,
    ledger: Mutex<Ledger>,
    /// Observations handed over and not taken yet.
    backlog: AtomicUsize,
    closing: AtomicBool,
}

impl Session {
    /// Start following: `start` is the instant that observations' times count from.
    ///
    /// # Errors
    /// When the thread cannot be started.
    pub fn start<B: Backend + 'static>(engine: Engine<B>, start: Instant) -> std::io::Result<Self> {
        let (seen, inbox) = channel();
        let shared = Arc::new(Shared {
            phase: AtomicU8::new(code(Phase::Ahead)),
            ledger: Mutex::default(),
            backlog: AtomicUsize::new(0),
            closing: AtomicBool::new(false),
        });
        let seen_by_engine = Arc::clone(&shared);
        let thread = std::thread::Builder::new()
            .name("foreread-engine".into())
            .spawn(move || run(engine, &inbox, &seen_by_engine, start))?;
        Ok(Self {
            seen,
            batch: Vec::new(),
            shared,
            thread,
        })
    }

    /// The program read this extent of a planned file.
    pub fn observe(&mut self, access: Access) {
        self.batch.push(Seen::Planned(access));
    }

    /// The program read a file that is not in the plan.
    pub fn stray(&mut self, access: Access) {
        self.batch.push(Seen::Stray(access));
    }

    /// Have the engine follow again a program that it let go as [`Phase::Hot`].
    pub fn resume(&mut self) {
        self.batch.push(Seen::Waiting);
        // Not when the engine gets there: until then the phase would say that nobody need be watched.
        let phase = code(Phase::Lost);
        self.shared.phase.store(phase, Ordering::Relaxed);
        self.flush();
    }

    /// Hand over what was observed since the last call.
    pub fn flush(&mut self) {
        if !self.batch.is_empty() {
            let count = self.batch.len();
            self.shared.backlog.fetch_add(count, Ordering::Relaxed);
            // An engine that is gone needs no observations.
            let _ = self.seen.send(std::mem::take(&mut self.batch));
        }
    }

    /// What the session is doing.
    pub fn phase(&self) -> Phase {
        phase(self.shared.phase.load(Ordering::Relaxed))
    }

    /// The account so far: not closed while pages are issued and unread.
    pub fn ledger(&self) -> Ledger {
        *self
            .shared
            .ledger
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Observations handed over that the engine has not come to yet: where they pile up, the program reads
    /// faster than any device and can be left to itself for a while.
    pub fn backlog(&self) -> usize {
        self.shared.backlog.load(Ordering::Relaxed)
    }

    /// Have the engine look at its source now, and not when its timer ends.
    pub fn wake(&self) {
        let _ = self.seen.send(Vec::new());
    }

    /// End the session and close its account. `None` if the engine's thread has died.
    pub fn finish(mut self) -> Option<Report> {
        self.flush();
        self.shared.closing.store(true, Ordering::Relaxed);
        drop(self.seen);
        self.thread.join().ok()
    }
}

fn run<B: Backend>(
    mut engine: Engine<B>,
    inbox: &Receiver<Vec<Seen>>,
    shared: &Shared,
    start: Instant,
) -> Report {
    let now = || start.elapsed().as_nanos() as u64;
    engine.survey();
    loop {
        let busy = engine.step(now());
        let phase = code(engine.phase());
        shared.phase.store(phase, Ordering::Relaxed);
        *shared.ledger.lock().unwrap_or_else(PoisonError::into_inner) = engine.ledger();
        let batch = inbox.recv_timeout(if busy { BUSY } else { IDLE });
        // What was issued before these reads has to be known before they are accounted for.
        engine.collect(now());
        match batch {
            // One batch a step: the queue has to be filled as fast as it is read.
            Ok(batch) => {
                shared.backlog.fetch_sub(batch.len(), Ordering::Relaxed);
                take(&mut engine, batch, now());
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
        if shared.closing.load(Ordering::Relaxed) {
            // The program has ended: what is left is only to be accounted for.
            engine.close();
        }
    }
    engine.finish(now())
}

fn take<B: Backend>(engine: &mut Engine<B>, batch: Vec<Seen>, now: u64) {
    for seen in batch {
        match seen {
            Seen::Planned(access) => engine.observe(&access),
            Seen::Stray(access) => engine.stray(&access),
            Seen::Waiting => engine.resume(now),
        }
    }
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
