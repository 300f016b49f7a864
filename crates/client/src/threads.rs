//! The client's threads: they live in the program, and share nothing with it but memory.
//!
//! Invariant: all of them have one table of descriptors, which is not the program's, so nothing the
//! program has open is ever closed by them, and no lock it holds is lost. So whatever holds a
//! descriptor ([`Register`], the backend) is made, used and dropped on these threads.
//!
//! Data flow: the program's threads → orders → the root thread → [`Register`]; the engine and
//! the hint threads are started by the root, and inherit its table and its blocked signals.

use std::io;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Instant;

use foreread_backend::{PageCache, Register};
use foreread_engine::{Config, Engine, Session};
use foreread_plan::FileId;
use foreread_profiles::Profiles;
use foreread_sources::{AccessList, Feed};
use foreread_sys::{process, thread};

/// A file to open.
#[derive(Debug)]
pub(crate) struct Addition {
    pub(crate) file: FileId,
    /// The name it can be opened by now.
    pub(crate) now: PathBuf,
    /// Its name for good.
    pub(crate) path: PathBuf,
    /// Whether to keep it open.
    pub(crate) keep: bool,
}

enum Order {
    Add(Addition, Sender<io::Result<()>>),
    Remove(FileId),
}

/// The root thread, and the way to it.
#[derive(Debug)]
pub(crate) struct Threads {
    orders: Sender<Order>,
    root: JoinHandle<io::Result<()>>,
}

impl Threads {
    /// Start the threads and a session that follows `list`; observations' times count from `start`.
    pub(crate) fn start(
        list: Arc<Mutex<AccessList>>,
        config: Config,
        process: u32,
        start: Instant,
    ) -> io::Result<(Self, Session)> {
        let (orders, inbox) = channel();
        let (ready, is_ready) = channel();
        let root = thread::spawn_apart("foreread-hint-root", move || {
            let (register, session) = match begin(list, config, process, start) {
                Ok(begun) => begun,
                Err(why) => {
                    // Whoever started the thread waits for this.
                    let _ = ready.send(Err(why));
                    return;
                }
            };
            if ready.send(Ok(session)).is_ok() {
                serve(&register, &inbox);
            }
        })?;
        match is_ready.recv() {
            Ok(session) => Ok((Self { orders, root }, session?)),
            Err(_) => Err(match root.join() {
                Ok(Err(why)) => why,
                _ => gone(),
            }),
        }
    }

    /// Have a file opened, and wait until it is.
    pub(crate) fn add(&self, addition: Addition) -> io::Result<()> {
        let (reply, answer) = channel();
        let sent = self.orders.send(Order::Add(addition, reply));
        sent.map_err(|_| gone())?;
        answer.recv().map_err(|_| gone())?
    }

    /// Have a file closed and forgotten.
    pub(crate) fn remove(&self, file: FileId) {
        // A thread that is gone has closed everything.
        let _ = self.orders.send(Order::Remove(file));
    }

    /// End the root thread, and with it what it holds.
    pub(crate) fn end(self) {
        drop(self.orders);
        // Its end is all that is wanted of it.
        let _ = self.root.join();
    }
}

fn gone() -> io::Error {
    io::Error::other("the prefetching threads have ended")
}

fn begin(
    list: Arc<Mutex<AccessList>>,
    config: Config,
    process: u32,
    start: Instant,
) -> io::Result<(Register, Session)> {
    let backend = PageCache::new(&Arc::default());
    let register = backend.register();
    // Without what was measured of them, devices are what they call themselves.
    let profiles = Profiles::load().unwrap_or_default();
    let engine = Engine::new(Box::new(Feed::new(list)), backend, config)
        .with_profiles(move |dev, _| profiles.of(dev)?.profile())
        .with_computed(move || process::computed(process));
    Ok((register, Session::start(move || engine, start)?))
}

fn serve(register: &Register, inbox: &Receiver<Order>) {
    for order in inbox {
        match order {
            Order::Add(addition, reply) => {
                let Addition {
                    file,
                    now,
                    path,
                    keep,
                } = addition;
                // Whoever asked may have been interrupted.
                let _ = reply.send(register.add(file, &now, &path, keep));
            }
            Order::Remove(file) => register.remove(file),
        }
    }
}
