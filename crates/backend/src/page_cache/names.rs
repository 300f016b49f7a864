//! Threads that look names up, so many at a time as a device is deep: each waits for it by itself.
//!
//! Invariants: every name is answered by exactly one `Event::Looked`, unless its file system never answers; nothing is opened but
//! directories whose entries are read, and these only while they are; where position matters names are looked up in the order of
//! their inodes, which lie on a device in that order.
//!
//! Data flow: [`Lanes`](super::lanes::Lanes) → one queue for each device → its [`Lookers`] → `Event::Looked`.

use std::collections::VecDeque;
use std::sync::mpsc::Sender;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{JoinHandle, Thread};
use std::time::{Duration, Instant};

use foreread_plan::{FileId, Kind};
use foreread_sys::name::Place;
use foreread_sys::processor::Aside;

use super::devices::Devices;
use super::files::Files;
use super::lanes::Common;
use crate::{Event, Outcome};

/// Threads for each device.
const LOOKERS: usize = 32;
/// Names that wait for each thread, beyond which one more is started: where names are in memory, one thread looks 300,000 up in a
/// second, and more would only be in the program's way.
const BACKLOG: usize = 4;
/// Entries of a directory that are read.
const ENTRIES: usize = 1 << 16;

/// To read the entries of a directory that is in memory takes no longer than this, and this for each: 3 µs and 0.1 µs were measured,
/// and a device takes at least 80 µs.
const LISTED: Duration = Duration::from_micros(40);
const LISTED_EACH: Duration = Duration::from_nanos(300);

/// A name to be looked up.
#[derive(Clone, Copy, Debug)]
pub(super) struct Name {
    pub(super) file: FileId,
    pub(super) kind: Kind,
    /// Where it was, as far as is known.
    pub(super) dev: u64,
    pub(super) ino: u64,
}

/// The threads of one device, which are started as they are needed.
#[derive(Default)]
pub(super) struct Lookers {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
    failed: bool,
}

#[derive(Default)]
struct Shared {
    queue: Mutex<Queue>,
    more: Condvar,
}

#[derive(Default)]
struct Queue {
    names: VecDeque<Name>,
    /// Threads that wait for names.
    idle: usize,
    ended: bool,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Lookers {
    /// Look these up, too.
    pub(super) fn add(&mut self, common: &Common, mut names: Vec<Name>, title: &str) {
        let positions = names
            .first()
            .is_some_and(|name| common.devices.positions(name.dev) != Some(false));
        if positions {
            names.sort_by_key(|name| name.ino);
        }
        let mut queue = self.shared.lock();
        queue.names.extend(names);
        let (waiting, idle) = (queue.names.len(), queue.idle);
        drop(queue);
        for _ in 0..idle.min(waiting) {
            self.shared.more.notify_one();
        }
        let busy = self.threads.len() - idle.min(self.threads.len());
        if !self.failed && self.threads.len() < LOOKERS && idle == 0 && waiting > busy * BACKLOG {
            self.start(common, title, (waiting - busy * BACKLOG).div_ceil(BACKLOG));
        }
    }

    fn start(&mut self, common: &Common, title: &str, more: usize) {
        for _ in 0..more.min(LOOKERS - self.threads.len()) {
            let looker = Looker {
                shared: Arc::clone(&self.shared),
                files: common.files.clone(),
                devices: common.devices.clone(),
                events: common.event.clone(),
                taker: std::thread::current(),
                aside: common.aside.clone(),
            };
            match foreread_sys::thread::builder(title).spawn(move || looker.run()) {
                Ok(thread) => self.threads.push(thread),
                // The others have to do.
                Err(_) => self.failed = true,
            }
        }
    }

    /// Have the threads end; those that there are.
    pub(super) fn end(self) -> Vec<JoinHandle<()>> {
        let mut queue = self.shared.lock();
        queue.ended = true;
        queue.names.clear();
        drop(queue);
        self.shared.more.notify_all();
        self.threads
    }
}

/// One thread.
struct Looker {
    shared: Arc<Shared>,
    files: Files,
    devices: Devices,
    events: Sender<Event>,
    /// Whoever takes the events.
    taker: Thread,
    aside: Aside,
}

impl Looker {
    fn run(mut self) {
        while let Some(name) = self.next() {
            self.aside.keep();
            let outcome = self.look(name);
            // Nobody left to tell: the session is over.
            let _ = self.events.send(Event::Looked {
                file: name.file,
                kind: name.kind,
                outcome,
            });
        }
    }

    /// The next name; `None` at the end.
    fn next(&self) -> Option<Name> {
        let mut queue = self.shared.lock();
        loop {
            if queue.ended {
                return None;
            }
            if let Some(name) = queue.names.pop_front() {
                return Some(name);
            }
            // Whoever has the names may have more.
            self.taker.unpark();
            queue.idle += 1;
            queue = self
                .shared
                .more
                .wait(queue)
                .unwrap_or_else(PoisonError::into_inner);
            queue.idle -= 1;
        }
    }

    fn look(&self, name: Name) -> Outcome {
        let Some(path) = self.files.path(name.file) else {
            return Outcome::Failed;
        };
        // What lies where nothing is mounted yet would be.
        if self.devices.under(&path).is_none() {
            return Outcome::Failed;
        }
        let Ok(place) = Place::find(&path) else {
            return Outcome::Failed;
        };
        let mut was_in_memory = place.was_in_memory;
        if name.kind == Kind::List {
            let begun = Instant::now();
            let Ok(count) = place.list(ENTRIES) else {
                return Outcome::Failed;
            };
            // Whether they were in memory only the time tells.
            was_in_memory &= begun.elapsed() < LISTED + LISTED_EACH * count as u32;
        }
        if was_in_memory {
            Outcome::InMemory
        } else {
            Outcome::Fetched
        }
    }
}
