//! Threads that look names up, as many at once as a device is deep: each lookup waits by itself.
//!
//! Invariants: every name is answered by exactly one `Event::Looked`, unless its file system never answers. Only listed directories are
//! opened, and only while they are read. Names requested together are looked up in the order of their inodes, which is their order on the
//! device, many in one block. 10,000 files in 200 folders, by 16 threads, took 0.11 s on a disk with a moving head and 0.11 s on a network
//! SSD, and 0.12 s and 0.30 s in the order of their paths. Names of one block are looked up by one thread, one after the other, because
//! only the first waits for the block.
//!
//! Data flow: [`Lanes`](super::lanes::Lanes) → one queue for each device → its [`Lookers`] → `Event::Looked`.

use std::collections::VecDeque;
use std::sync::mpsc::Sender;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{JoinHandle, Thread};

use foreread_plan::{FileId, Kind};
use foreread_sys::name::NameLookup;
use foreread_sys::processor::Aside;

use super::context::Context;
use super::devices::Devices;
use super::files::Files;
use crate::{Event, Outcome};

/// Threads for each device. To look up 10,000 files on a network SSD in the order of their inodes took one thread 0.24 s, four
/// 0.13 s, 16 and more 0.11 s; on a local virtual disk, in the order of their paths, one 0.07 s, 16 0.055 s, 32 0.043 s, 64 no
/// less. `statx` by io_uring, as deep, took 1.2 to 1.9 times as long there and more of the processor: the kernel hands each to a thread
/// of its own.
const LOOKERS: usize = 32;
/// Number of waiting names per thread beyond which another thread is started. If names are in memory, one thread looks 300,000 up in a
/// second, and more threads would only disturb the program. Four names take 13 µs.
const BACKLOG: usize = 4;
/// Entries of a directory that are read at most: a bound on memory.
const ENTRIES: usize = 1 << 16;
/// Inodes in one block of a device: 256 bytes each in blocks of 4 KiB, as on ext4. XFS has 8 to 16 in a block, and reads 32 at once; btrfs
/// has about 20 in a leaf.
const IN_BLOCK: u64 = 16;

/// Names of one block that a thread takes at a time where each of them has to be waited for, as on a network file
/// system: so threads for the others are left. The least by which it still shows whether the second of a block waits.
const PAIR: usize = 2;
/// Limit of the counter of evidence, in names: the names of two blocks.
const SURE: i32 = 32;

/// The block that an inode lies in, if its number is known. They are numbered from 1.
pub(super) fn block(ino: u64) -> Option<u64> {
    Some(ino.checked_sub(1)? / IN_BLOCK)
}

/// A name to be looked up.
#[derive(Clone, Copy, Debug)]
pub(super) struct Name {
    pub(super) file: FileId,
    pub(super) kind: Kind,
    /// Its inode, as far as is known.
    pub(super) ino: u64,
}

/// The threads of one device, started as needed.
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
    /// Lookups that waited after another one of their block, minus those that did not, up to [`SURE`].
    alone: i32,
    ended: bool,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Lookers {
    /// Look these up, too.
    pub(super) fn add(&mut self, context: &Context, mut names: Vec<Name>, title: &str) {
        names.sort_by_key(|name| name.ino);
        let mut queue = self.shared.lock();
        queue.names.extend(names);
        let (waiting, idle) = (queue.names.len(), queue.idle);
        drop(queue);
        for _ in 0..idle.min(waiting) {
            self.shared.more.notify_one();
        }
        let busy = self.threads.len() - idle.min(self.threads.len());
        if !self.failed && self.threads.len() < LOOKERS && idle == 0 && waiting > busy * BACKLOG {
            self.start(context, title, (waiting - busy * BACKLOG).div_ceil(BACKLOG));
        }
    }

    fn start(&mut self, context: &Context, title: &str, more: usize) {
        for _ in 0..more.min(LOOKERS - self.threads.len()) {
            let looker = Looker {
                shared: Arc::clone(&self.shared),
                files: context.files.clone(),
                devices: context.devices.clone(),
                events: context.event.clone(),
                taker: std::thread::current(),
                aside: context.aside.clone(),
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

/// A thread that looks names up.
struct Looker {
    shared: Arc<Shared>,
    files: Files,
    devices: Devices,
    events: Sender<Event>,
    /// The thread that takes the events.
    taker: Thread,
    aside: Aside,
}

impl Looker {
    fn run(mut self) {
        let mut names = Vec::new();
        let mut alone = 0;
        while self.next(&mut names, std::mem::take(&mut alone)) {
            self.aside.keep();
            for (n, name) in names.drain(..).enumerate() {
                let outcome = self.look(name);
                // The entries of a directory lie elsewhere.
                if n > 0 && name.kind != Kind::List {
                    alone += if outcome == Outcome::Fetched { 1 } else { -1 };
                }
                // The session may be over.
                let _ = self.events.send(Event::Looked {
                    file: name.file,
                    kind: name.kind,
                    outcome,
                });
            }
        }
    }

    /// The next names, all in one block; false at the end. `alone` is the evidence that names after the first of a block wait, too.
    fn next(&self, names: &mut Vec<Name>, alone: i32) -> bool {
        let mut queue = self.shared.lock();
        queue.alone = (queue.alone + alone).clamp(-SURE, SURE);
        loop {
            if queue.ended {
                return false;
            }
            let most = if queue.alone > 0 {
                PAIR
            } else {
                IN_BLOCK as usize
            };
            let in_block = |first: &Name, name: &Name| {
                block(first.ino).is_some() && block(first.ino) == block(name.ino)
            };
            while let Some(name) = queue.names.front()
                && names.len() < most
                && names.first().is_none_or(|first| in_block(first, name))
            {
                names.extend(queue.names.pop_front());
            }
            if !names.is_empty() {
                return true;
            }
            // The taker of the events may have more names.
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
        // Names below an automount point that is not mounted are left out.
        if self.devices.under(&path).is_none() {
            return Outcome::Failed;
        }
        let Ok(place) = NameLookup::find(&path) else {
            return Outcome::Failed;
        };
        let mut was_waited_for = place.was_waited_for;
        if name.kind == Kind::List {
            let Ok(waited) = place.list(ENTRIES) else {
                return Outcome::Failed;
            };
            was_waited_for |= waited;
        }
        if was_waited_for {
            Outcome::Fetched
        } else {
            Outcome::InMemory
        }
    }
}
