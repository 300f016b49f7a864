//! The kernel's page cache, filled by hints.
//!
//! Hints can block (opening a cold file, reading its extent tree, a full request queue), so
//! they are given by a few worker threads; a region of a file always goes to the same worker,
//! which keeps its requests in order. The caller's side never waits.
//!
//! A file is open no longer than it is worked on, but for those that many requests follow each other for
//! ([`held`]): a program that has closed a file may lease it, unmount what it lies on, or have its
//! room back.
//!
//! Data flow: `submit` and `prepare` → a worker's channel → [`worker`]: open, look what is
//! missing, hint, watch until it is up to date → one channel of events → `poll`.

mod devices;
mod file;
mod files;
mod held;
mod looks;
mod worker;

use std::collections::{BTreeMap, HashSet};
use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use foreread_plan::{FileId, FileMeta, PAGE, Request};
use foreread_sys::processor::Aside;

use crate::{Backend, Change, DeviceFacts, Event};
use devices::Devices;
use file::Opened;
use files::Files;
pub use files::Register;
use worker::Worker;

/// Threads that give hints. Mostly they wait for a device to open a file, so there are more than
/// processors, and few enough to stay out of the program's way.
const WORKERS: usize = 4;

/// Pages of a file that go to one worker (1 MiB): a small file is opened once, and the hints
/// about a large one, 8 µs each on a virtual disk, are given by several.
const REGION: u64 = 256;

/// A hint that no kernel cuts, in bytes, whatever its device.
const SMALL_HINT: u64 = 128 << 10;

/// How long the end of a backend waits for its workers, at most.
const PARTING: Duration = Duration::from_millis(20);

/// What a worker is told.
enum Job {
    Prepare(FileId),
    Fetch(Request),
    /// Watch these parts of it arrive: they are hinted about already.
    Await(Request, Vec<Range<u64>>),
    Discard(FileId, Range<u64>),
    Forget(FileId),
}

/// The page-cache backend.
pub struct PageCache {
    files: Files,
    devices: Devices,
    looked_at: Option<(FileId, Opened)>,
    /// Files looked at so far.
    met: HashSet<FileId>,
    /// For the thread that polls, and starts the others.
    aside: Aside,
    lanes: Vec<Lane>,
    /// What was submitted before the first poll, by whoever made this.
    begun: Option<(Request, Vec<Range<u64>>)>,
    event: Sender<Event>,
    events: Receiver<Event>,
}

/// The way to a worker, whose thread is started by its first job: a program that finds everything in
/// memory needs none.
struct Lane {
    jobs: Sender<Job>,
    /// Told to whoever else has jobs: without a thread, nobody would take them.
    started: Arc<AtomicBool>,
    state: State,
}

enum State {
    Unstarted(Receiver<Job>),
    Running(JoinHandle<()>),
    /// No thread could be had. Its hints are lost, and nothing else.
    Failed,
}

impl PageCache {
    /// A backend for these files, as an earlier run found them; a [`Register`] adds to them.
    pub fn new(files: &Arc<BTreeMap<FileId, FileMeta>>) -> Self {
        let (event, events) = channel();
        let lane = |_| {
            let (jobs, inbox) = channel();
            Lane {
                jobs,
                started: Arc::default(),
                state: State::Unstarted(inbox),
            }
        };
        Self {
            files: Files::recorded(files),
            devices: Devices::default(),
            looked_at: None,
            met: HashSet::new(),
            aside: Aside::new(),
            lanes: (0..WORKERS).map(lane).collect(),
            begun: None,
            event,
            events,
        }
    }

    /// What adds and removes files while the backend runs.
    pub fn register(&self) -> Register {
        let worker = |lane: &Lane| (lane.jobs.clone(), Arc::clone(&lane.started));
        Register {
            files: self.files.clone(),
            workers: self.lanes.iter().map(worker).collect(),
        }
    }

    /// The file, open to be looked at; the last one looked at is kept until [`Backend::let_go`].
    fn look_at(&mut self, file: FileId) -> Option<&mut Opened> {
        if self
            .looked_at
            .as_ref()
            .is_none_or(|(last, _)| *last != file)
        {
            let opened = Opened::open(self.files.get(file)?);
            if self.met.insert(file) {
                self.report(file, &opened);
            }
            self.looked_at = Some((file, opened.ok()?));
        }
        self.looked_at.as_mut().map(|(_, opened)| opened)
    }

    /// Tell what keeps a file from being what was recorded. One that was written to in place may still be read as
    /// before.
    fn report(&self, file: FileId, opened: &io::Result<Opened>) {
        let event = match opened {
            Ok(opened) => match &opened.change {
                None | Some(Change::Modified) => return,
                Some(change) => Event::Changed {
                    file,
                    change: change.clone(),
                },
            },
            Err(why) => Event::Gone {
                file,
                why: why.to_string(),
            },
        };
        // This backend has the other end.
        let _ = self.event.send(event);
    }

    fn tell(&mut self, file: FileId, page: u64, job: Job) {
        let n = ((u64::from(file.0) + page / REGION) % WORKERS as u64) as usize;
        // A worker that is gone takes its hints with it, and nothing else.
        let _ = self.lanes[n].jobs.send(job);
        if let State::Unstarted(_) = self.lanes[n].state {
            self.start(n);
        }
    }

    fn start(&mut self, n: usize) {
        let (files, event) = (self.files.clone(), self.event.clone());
        let worker = Worker::new(files, self.devices.clone(), event, self.aside.clone());
        self.lanes[n].started.store(true, Ordering::Relaxed);
        let state = &mut self.lanes[n].state;
        if let State::Unstarted(inbox) = std::mem::replace(state, State::Failed)
            && let Ok(thread) = foreread_sys::thread::builder(&format!("foreread-hint-{n}"))
                .spawn(move || worker.run(&inbox))
        {
            *state = State::Running(thread);
        }
    }
}

impl Backend for PageCache {
    fn add(&mut self, file: FileId, meta: FileMeta) {
        self.met.remove(&file);
        self.files.add(file, meta);
    }

    fn device(&mut self, file: FileId) -> Option<u64> {
        let known = self.files.get(file)?;
        let meta = &known.meta;
        // Mounted since, perhaps.
        if known.live && self.devices.has_mounted(meta.dev) {
            return Some(meta.dev);
        }
        self.devices.under(&meta.path)
    }

    fn facts(&mut self, device: u64) -> DeviceFacts {
        let device = self.devices.of(device);
        DeviceFacts {
            name: device.name.clone(),
            rotational: device.rotational,
        }
    }

    fn assume(&mut self, device: u64, positions: bool) {
        self.devices.assume(device, positions);
    }

    fn prepare(&mut self, file: FileId) {
        self.tell(file, 0, Job::Prepare(file));
    }

    fn submit(&mut self, request: Request) {
        self.tell(request.file, request.pages.start, Job::Fetch(request));
    }

    fn submit_now(&mut self, request: Request) -> bool {
        let event = self.event.clone();
        let Some(opened) = self.look_at(request.file) else {
            return false;
        };
        let parts = opened.hint_missing(&request, SMALL_HINT, &event);
        self.let_go();
        let any = !parts.is_empty();
        if any {
            self.begun = Some((request, parts));
        }
        any
    }

    fn poll(&mut self, events: &mut Vec<Event>) {
        self.aside.keep();
        if let Some((request, parts)) = self.begun.take() {
            self.tell(
                request.file,
                request.pages.start,
                Job::Await(request, parts),
            );
        }
        events.extend(self.events.try_iter());
    }

    fn resident(&mut self, file: FileId, pages: Range<u64>) -> Option<u64> {
        let Some(opened) = self.look_at(file) else {
            // Of a file that cannot be opened nothing can be missing.
            return Some(pages.end - pages.start);
        };
        opened.look_again();
        // What lies past the end of a file that has shrunk is not missing.
        let end = pages.end.min(opened.size.div_ceil(PAGE)).max(pages.start);
        Some(opened.resident(&(pages.start..end))? + (pages.end - end))
    }

    fn pages(&mut self, file: FileId) -> Option<u64> {
        let opened = self.look_at(file)?;
        opened.look_again();
        Some(opened.size.div_ceil(PAGE))
    }

    fn evicted(&mut self, file: FileId, pages: Range<u64>) -> Option<u64> {
        let range = pages.start * PAGE..pages.end * PAGE;
        Some(self.look_at(file)?.cached(&range).ok()?.evicted)
    }

    fn let_go(&mut self) {
        self.looked_at = None;
    }

    fn discard(&mut self, file: FileId, pages: Range<u64>) {
        let mut at = pages.start;
        while at < pages.end {
            // By whoever fetched them: a page wanted again meanwhile is asked for after this.
            let to = pages.end.min((at / REGION + 1) * REGION);
            self.tell(file, at, Job::Discard(file, at..to));
            at = to;
        }
    }
}

impl Drop for PageCache {
    fn drop(&mut self) {
        let threads: Vec<_> = self
            .lanes
            .drain(..)
            .filter_map(|lane| match lane.state {
                State::Running(thread) => Some(thread),
                State::Unstarted(_) | State::Failed => None,
            })
            .collect();
        // A worker that is done closes its files, and whoever waits for that need not look twice.
        // One may be inside a hint on a stuck device; the process need not wait for it.
        let until = Instant::now() + PARTING;
        while threads.iter().any(|thread| !thread.is_finished()) && Instant::now() < until {
            std::thread::sleep(Duration::from_micros(50));
        }
        for thread in threads {
            if thread.is_finished() {
                let _ = thread.join();
            }
        }
    }
}
