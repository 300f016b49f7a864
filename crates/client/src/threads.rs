//! The client's threads: they live in the program, and share nothing with it but memory.
//!
//! Invariant: all of them have one table of descriptors, which is not the program's, so nothing the
//! program has open is ever closed by them, and no lock it holds is lost. So whatever holds a
//! descriptor ([`Register`], the backend) is made, used and dropped on these threads.
//!
//! Data flow: the program's threads → orders → the root thread → [`Register`]; the engine and
//! the hint threads are started by the root, and inherit its table and its blocked signals.

use std::collections::HashMap;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use foreread_backend::{PageCache, Register};
use foreread_engine::{Config, Engine, Session};
use foreread_plan::{FileId, PAGE};
use foreread_profiles::Profiles;
use foreread_sources::{AccessList, Feed};
use foreread_sys::device::Device;
use foreread_sys::{file, memory, process, thread};

/// A report that takes longer to write is not waited for: a file system need not answer.
const PATIENCE: Duration = Duration::from_secs(1);

/// A file to open.
#[derive(Debug)]
pub(crate) struct Addition {
    pub(crate) file: FileId,
    /// The name it can be opened by now.
    pub(crate) now: PathBuf,
    /// Its name for good.
    pub(crate) path: PathBuf,
    /// Its device (`st_dev`).
    pub(crate) dev: u64,
    /// True to keep it open.
    pub(crate) keep: bool,
}

/// Facts about a file for the program's threads, which open nothing.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Registered {
    /// The kernel's read-ahead for it, in bytes; `None` if nothing is fetched from it.
    pub(crate) read_ahead: Option<u64>,
}

/// A session that has begun.
pub(crate) struct Begun {
    pub(crate) session: Session,
    /// The memory it starts with, in bytes.
    pub(crate) budget: u64,
}

enum RootTask {
    Add(Addition, Sender<io::Result<Registered>>),
    Remove(FileId),
    /// Append a text to a file of this user's own.
    Write(PathBuf, String, Sender<io::Result<()>>),
}

/// The root thread, and the way to it.
#[derive(Debug)]
pub(crate) struct Threads {
    orders: Sender<RootTask>,
    root: JoinHandle<io::Result<()>>,
}

impl Threads {
    /// Starts the threads and a session that follows `list`. Observation times count from `start`. Without a `budget`, in bytes, it depends
    /// on the free memory.
    pub(crate) fn start(
        list: Arc<Mutex<AccessList>>,
        config: Config,
        budget: Option<u64>,
        process: u32,
        start: Instant,
    ) -> io::Result<(Self, Begun)> {
        let (orders, inbox) = channel();
        let (ready, is_ready) = channel();
        let root = thread::spawn_apart("foreread-hint-root", move || {
            let (register, begun) = match begin(list, config, budget, process, start) {
                Ok(begun) => begun,
                Err(why) => {
                    // The starter of the thread waits for this.
                    let _ = ready.send(Err(why));
                    return;
                }
            };
            if ready.send(Ok(begun)).is_ok() {
                serve(&register, &inbox);
            }
        })?;
        match is_ready.recv() {
            Ok(begun) => Ok((Self { orders, root }, begun?)),
            Err(_) => Err(match root.join() {
                Ok(Err(why)) => why,
                _ => gone(),
            }),
        }
    }

    /// Opens a file in the threads, and waits for that.
    pub(crate) fn add(&self, addition: Addition) -> io::Result<Registered> {
        let (reply, answer) = channel();
        let sent = self.orders.send(RootTask::Add(addition, reply));
        sent.map_err(|_| gone())?;
        answer.recv().map_err(|_| gone())?
    }

    /// Have a file closed and forgotten.
    pub(crate) fn remove(&self, file: FileId) {
        // A thread that is gone has closed everything.
        let _ = self.orders.send(RootTask::Remove(file));
    }

    /// Have a text appended to a file, made if need be, and wait for that, but not for ever.
    pub(crate) fn write(&self, path: PathBuf, text: String) -> io::Result<()> {
        let (reply, answer) = channel();
        let sent = self.orders.send(RootTask::Write(path, text, reply));
        sent.map_err(|_| gone())?;
        let late = |_| io::Error::from(io::ErrorKind::TimedOut);
        answer.recv_timeout(PATIENCE).map_err(late)?
    }

    /// Ends the root thread, and drops all that it holds.
    pub(crate) fn end(self) {
        drop(self.orders);
        // Only its end matters.
        let _ = self.root.join();
    }
}

fn gone() -> io::Error {
    io::Error::other("the prefetching threads have ended")
}

fn begin(
    list: Arc<Mutex<AccessList>>,
    config: Config,
    budget: Option<u64>,
    process: u32,
    start: Instant,
) -> io::Result<(Register, Begun)> {
    // A budget that was given stays; that of the machine's memory follows it.
    let free_pages: Option<fn() -> u64> = match budget {
        Some(_) => None,
        None => Some(|| memory::budget() / PAGE),
    };
    let budget = budget.unwrap_or_else(memory::budget);
    let config = Config {
        budget_pages: budget / PAGE,
        free_pages,
        ..config
    };
    let backend = PageCache::new(&Arc::default());
    let register = backend.register();
    // Without measured profiles, devices have the default of their kind.
    let profiles = Profiles::load().unwrap_or_default();
    let engine = Engine::new(backend, config)
        .with_strand("access_list", Box::new(Feed::new(list)))
        .with_profiles(move |dev, _| profiles.of(dev)?.profile())
        .with_computed(move || process::computed(process));
    let session = Session::start(move || engine, start)?;
    Ok((register, Begun { session, budget }))
}

fn serve(register: &Register, inbox: &Receiver<RootTask>) {
    // The system's setting of each device is read once.
    let mut read_ahead = HashMap::new();
    for order in inbox {
        match order {
            RootTask::Add(addition, reply) => {
                let Addition {
                    file,
                    now,
                    path,
                    dev,
                    keep,
                } = addition;
                let added = register.add(file, &now, &path, keep);
                let facts = added.map(|()| Registered {
                    read_ahead: Some(
                        *read_ahead
                            .entry(dev)
                            .or_insert_with(|| Device::of(dev).read_ahead),
                    ),
                });
                // The caller may have been interrupted.
                let _ = reply.send(facts);
            }
            RootTask::Remove(file) => register.remove(file),
            RootTask::Write(path, text, reply) => {
                // The caller may have stopped waiting.
                let _ = reply.send(append(&path, &text));
            }
        }
    }
}

fn append(path: &Path, text: &str) -> io::Result<()> {
    file::append_own(path)?.write_all(text.as_bytes())
}
