//! The kernel's page cache, filled by hints.
//!
//! Hints can block (opening a cold file, reading its extent tree, a full request queue), and so can questions, so
//! both are left to threads ([`lanes`]): the caller's side never waits.
//!
//! A file is open only while it is worked on, except for files with a series of requests ([`held`]): a program that has closed a file may
//! lease it, unmount its file system, or expect its space back.
//!
//! Data flow: `submit` and `prepare` → a worker's channel → [`worker`]: open, find missing pages, request them, watch until they arrive →
//! one channel of events → `poll`. `ask` → [`ask`]: open, examine → the same channel. `look` → [`names`]: look names up → the same channel.

mod ask;
mod context;
mod devices;
pub(crate) mod file;
pub(crate) mod files;
pub(crate) mod held;
mod joined;
mod lanes;
mod looks;
mod names;
mod register;
mod worker;

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};

use foreread_plan::{FileId, FileMeta, Kin, Kind, Request};
use foreread_sys::processor::Aside;

use crate::{Backend, DeviceFacts, Event, Question};
use context::Context;
use devices::Devices;
use file::SMALL_HINT;
use files::Files;
pub use files::Recorded;
use lanes::{Lanes, REGION};
pub use register::Register;
use worker::Job;

/// The page-cache backend.
pub struct PageCache {
    context: Context,
    lanes: Lanes,
    events: Receiver<Event>,
}

impl PageCache {
    /// A backend for these files, as an earlier run found them; a [`Register`] adds to them.
    pub fn new(files: &Arc<BTreeMap<FileId, FileMeta>>) -> Self {
        let files = Arc::clone(files);
        Self::of(files)
    }

    /// As [`PageCache::new`], for files that are found when they are asked for.
    pub fn of(files: Arc<dyn Recorded>) -> Self {
        let (event, events) = channel();
        Self {
            context: Context {
                files: Files::recorded(files),
                devices: Devices::default(),
                event,
                // For the thread that polls, and starts the others.
                aside: Aside::new(),
            },
            lanes: Lanes::new(),
            events,
        }
    }

    /// Opens only the very files that are known, by paths without symbolic links: for a process that fetches for other users. To be called
    /// before there are threads.
    #[must_use]
    pub fn exactly(mut self) -> Self {
        self.context.files.exactly();
        self
    }

    /// The register, which adds and removes files while the backend runs.
    pub fn register(&self) -> Register {
        Register {
            files: self.context.files.clone(),
            started: self.lanes.started(),
        }
    }

    /// The files it knows of, for who fetches them in another way, and how such threads keep out of the program's way.
    pub(crate) fn shared(&self) -> (Files, Aside) {
        (self.context.files.clone(), self.context.aside.clone())
    }

    /// The known devices.
    pub(crate) fn devices(&self) -> &Devices {
        &self.context.devices
    }

    fn tell(&mut self, file: FileId, page: u64, job: Job) {
        self.lanes.tell(&self.context, file, page, job);
    }
}

impl Backend for PageCache {
    fn add(&mut self, file: FileId, meta: FileMeta) {
        if self.context.files.add(file, meta) {
            // Earlier findings about the file are reported again.
            self.lanes.started().forget(file);
        }
    }

    fn device(&mut self, file: FileId) -> Option<u64> {
        let devices = &self.context.devices;
        let device = |meta: &FileMeta, live| match live {
            // Mounted since, perhaps.
            true if devices.has_mounted(meta.dev) => Some(meta.dev),
            _ => devices.under(&meta.path),
        };
        self.context.files.with(file, device)?
    }

    fn block(&mut self, file: FileId) -> Option<u64> {
        names::block(self.context.files.place(file).1)
    }

    fn kin(&mut self, file: FileId) -> Option<Kin> {
        // A few bits of the inode number suffice: inodes in one block were mostly created one after another, and so were their files.
        let kin = |meta: &FileMeta, _| {
            Kin::new((names::block(meta.ino)? as u32).wrapping_add(1))
                .filter(|_| meta.size <= SMALL_HINT)
        };
        self.context.files.with(file, kin)?
    }

    fn facts(&mut self, device: u64) -> DeviceFacts {
        let devices = &self.context.devices;
        DeviceFacts {
            name: devices.of(device).name.clone(),
            positions: devices.positions(device),
        }
    }

    fn assume(&mut self, device: u64, positions: bool) {
        self.context.devices.assume(device, positions);
    }

    fn prepare(&mut self, file: FileId) {
        self.tell(file, 0, Job::Prepare(file));
    }

    fn submit(&mut self, request: Request) {
        self.tell(request.file, request.pages.start, Job::Fetch(request));
    }

    fn submit_together(&mut self, mut requests: Vec<Request>) {
        let files = &self.context.files;
        let Some(first) = requests.first().map(|request| request.file) else {
            return;
        };
        if self.context.devices.positions(files.place(first).0) == Some(false) {
            // As they probably lie there.
            requests.sort_by_key(|request| (files.place(request.file).1, request.pages.start));
        }
        self.tell(first, 0, Job::Together(requests));
    }

    fn poll(&mut self, events: &mut Vec<Event>) {
        self.context.aside.keep();
        events.extend(self.events.try_iter());
    }

    fn look(&mut self, names: &[(FileId, Kind)]) {
        self.lanes.look(&self.context, names);
    }

    fn ask(&mut self, question: Question) {
        self.lanes.ask(&self.context, question);
    }

    fn discard(&mut self, file: FileId, pages: Range<u64>) {
        let mut at = pages.start;
        while at < pages.end {
            // Discarded by the worker that fetched them: a page that is wanted again meanwhile is requested after this.
            let to = pages.end.min((at / REGION + 1) * REGION);
            self.tell(file, at, Job::Discard(file, at..to));
            at = to;
        }
    }
}
