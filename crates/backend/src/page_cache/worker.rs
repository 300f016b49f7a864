//! A thread that gives hints and watches for their pages to arrive.
//!
//! Invariant: every `Job::Fetch` is answered by exactly one `Event::Done`.

use std::collections::{HashMap, HashSet, VecDeque};
use std::ops::Range;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::thread::{JoinHandle, Thread};
use std::time::{Duration, Instant};

use foreread_plan::{FileId, Request, RequestId};
use foreread_sys::file::FileFacts;
use foreread_sys::processor::Aside;

use super::Job;
use super::devices::Devices;
use super::file::{Opened, changed};
use super::files::Files;
use super::looks::Looks;
use crate::Event;

/// Requests found still under way that end a look: each costs a call.
const STRAGGLERS: usize = 8;
/// How long pages may take before the hint is thought lost and given once more.
const PATIENCE: Duration = Duration::from_secs(2);
/// A scattered read slower than this waited for a head to move or a platter to turn.
const MOVING_HEAD: Duration = Duration::from_millis(2);
/// Files a worker keeps open.
const OPEN_FILES: usize = 128;

/// A request on its way.
struct Flight {
    id: RequestId,
    file: FileId,
    /// Parts that have not arrived yet.
    parts: Vec<Range<u64>>,
    since: Instant,
    again: bool,
}

/// One worker's state.
pub(super) struct Worker {
    files: Files,
    events: Sender<Event>,
    /// Whoever takes the events.
    taker: Thread,
    open: HashMap<FileId, Opened>,
    /// Oldest first.
    order: VecDeque<FileId>,
    reported: HashSet<FileId>,
    /// Files opened while it was being found out what their device is: to be reported when that is known.
    unreported: Vec<FileId>,
    /// Finds that out.
    prover: Option<JoinHandle<()>>,
    devices: Devices,
    flights: VecDeque<Flight>,
    looks: Looks,
    aside: Aside,
}

impl Worker {
    /// A worker started by whoever takes its events.
    pub(super) fn new(files: Files, devices: Devices, events: Sender<Event>, aside: Aside) -> Self {
        Self {
            files,
            events,
            taker: std::thread::current(),
            open: HashMap::new(),
            order: VecDeque::new(),
            reported: HashSet::new(),
            unreported: Vec::new(),
            prover: None,
            devices,
            flights: VecDeque::new(),
            looks: Looks::new(Instant::now()),
            aside,
        }
    }

    /// Work until the backend is dropped.
    pub(super) fn run(mut self, inbox: &Receiver<Job>) {
        loop {
            self.aside.keep();
            let job = if self.flights.is_empty() {
                inbox.recv().map_err(|_| RecvTimeoutError::Disconnected)
            } else {
                let due = self.looks.due(self.flights.len());
                inbox.recv_timeout(due.saturating_duration_since(Instant::now()))
            };
            match job {
                Ok(job) => {
                    self.take(job);
                    while let Ok(job) = inbox.try_recv() {
                        self.take(job);
                    }
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            for file in std::mem::take(&mut self.unreported) {
                self.ready(file);
            }
            if !self.flights.is_empty() && self.looks.due(self.flights.len()) <= Instant::now() {
                self.look();
            }
        }
        if let Some(prover) = self.prover {
            // One that panicked has told nobody anything.
            let _ = prover.join();
        }
    }

    fn take(&mut self, job: Job) {
        match job {
            Job::Prepare(file) => self.prepare(file),
            Job::Fetch(request) => {
                let parts = self.issue(&request).unwrap_or_default();
                self.watch(&request, parts);
            }
            Job::Await(request, parts) => {
                // What its device is taken for is not settled yet.
                self.hold(request.file);
                self.watch(&request, parts);
            }
            Job::Forget(file) => {
                self.open.remove(&file);
                self.order.retain(|&other| other != file);
            }
            Job::Discard(file, pages) => {
                if self.ready(file)
                    && let Some(opened) = self.open.get(&file)
                {
                    opened.discard(&pages);
                    self.forget(file, &pages);
                }
            }
        }
    }

    /// Watch these pages no longer: a quick program has read them before anybody looked, and they will not be seen to
    /// arrive any more. Waited for, they would be fetched again.
    fn forget(&mut self, file: FileId, pages: &Range<u64>) {
        for flight in self.flights.iter_mut().filter(|one| one.file == file) {
            let parts = std::mem::take(&mut flight.parts).into_iter();
            let halves = parts.flat_map(|part| {
                let before = part.start..part.end.min(pages.start);
                let after = part.start.max(pages.end)..part.end;
                [before, after]
            });
            flight.parts = halves.filter(|half| !half.is_empty()).collect();
        }
    }

    /// Bring a file's metadata into memory. It is opened only if there is something to report: of those that are opened
    /// ahead, more than may be kept open would have to be opened again.
    fn prepare(&mut self, file: FileId) {
        let as_known = self.files.get(file).is_some_and(|known| {
            let meta = &known.meta;
            let is_the_same = |facts| changed(meta, &facts).is_none();
            self.devices.positions(meta.dev) == Some(false)
                && FileFacts::at(&meta.path).is_ok_and(is_the_same)
        });
        if !as_known {
            self.ready(file);
        }
    }

    /// Have the file open; report it the first time, or when it is known whether positions matter on its device.
    fn ready(&mut self, file: FileId) -> bool {
        if !self.hold(file) {
            return false;
        }
        if let Some(opened) = self.open.get(&file)
            && !self.reported.contains(&file)
        {
            match self.devices.positions(opened.dev) {
                Some(rotational) => {
                    self.reported.insert(file);
                    introduce(file, opened, rotational, &self.events);
                    // Where reads go by position, nothing of the file is fetched before its place is known.
                    self.taker.unpark();
                }
                None if self.devices.claim_proof(opened.dev) => {
                    self.reported.insert(file);
                    let opened = opened.twin();
                    self.prove(file, opened);
                }
                None => self.unreported.push(file),
            }
        }
        true
    }

    /// Find out whether distance costs time on a file's device, which says so: many virtual disks say so wrongly. That takes
    /// milliseconds if they are right, in which others' hints need not wait: it has a thread of its own.
    fn prove(&mut self, file: FileId, opened: Opened) {
        let (devices, events) = (self.devices.clone(), self.events.clone());
        let taker = self.taker.clone();
        let prove = move || {
            let rotational = opened.is_slow(MOVING_HEAD).unwrap_or(true);
            devices.assume(opened.dev, rotational);
            introduce(file, &opened, rotational, &events);
            taker.unpark();
        };
        let thread = foreread_sys::thread::builder("foreread-hint-p");
        match thread.spawn(prove) {
            Ok(prover) => self.prover = Some(prover),
            // Then the device's word has to do.
            Err(_) => {
                self.reported.remove(&file);
                if let Some(opened) = self.open.get(&file) {
                    self.devices.assume(opened.dev, true);
                }
                self.unreported.push(file);
            }
        }
    }

    /// Have the file open; report only what keeps it from being so.
    fn hold(&mut self, file: FileId) -> bool {
        if self.open.contains_key(&file) {
            return true;
        }
        let opened = match self.files.get(file).map(Opened::open) {
            Some(Ok(opened)) => opened,
            Some(Err(why)) => {
                if self.reported.insert(file) {
                    self.report(Event::Gone {
                        file,
                        why: why.to_string(),
                    });
                }
                return false;
            }
            None => return false,
        };
        self.make_room();
        self.open.insert(file, opened);
        self.order.push_back(file);
        true
    }

    /// Close the file opened longest ago that nothing is on its way for.
    fn make_room(&mut self) {
        if self.open.len() < OPEN_FILES {
            return;
        }
        let busy: HashSet<FileId> = self.flights.iter().map(|flight| flight.file).collect();
        if let Some(at) = self.order.iter().position(|file| !busy.contains(file))
            && let Some(file) = self.order.remove(at)
        {
            self.open.remove(&file);
        }
    }

    /// See to the answer to a request whose missing parts these were.
    fn watch(&mut self, request: &Request, parts: Vec<Range<u64>>) {
        if parts.is_empty() {
            self.done(request.id, false, true);
            return;
        }
        let since = Instant::now();
        if self.flights.is_empty() {
            self.looks.begin(since);
        }
        self.flights.push_back(Flight {
            id: request.id,
            file: request.file,
            parts,
            since,
            again: false,
        });
    }

    /// Hint about what is missing of a request; the parts hinted about.
    fn issue(&mut self, request: &Request) -> Option<Vec<Range<u64>>> {
        if !self.ready(request.file) {
            return None;
        }
        let dev = self.open.get(&request.file)?.dev;
        let max_hint = self.devices.of(dev).max_hint;
        let opened = self.open.get_mut(&request.file)?;
        opened.look_again();
        Some(opened.hint_missing(request, max_hint, &self.events))
    }

    /// See what has arrived: mostly the oldest, so a few that have not end the look.
    fn look(&mut self) {
        let mut waiting = Vec::new();
        let before = self.flights.len();
        while waiting.len() < STRAGGLERS
            && let Some(mut flight) = self.flights.pop_front()
        {
            match self.landed(&mut flight) {
                None => waiting.push(flight),
                Some(complete) => self.done(flight.id, true, complete),
            }
        }
        for flight in waiting.into_iter().rev() {
            self.flights.push_front(flight);
        }
        let arrived = before - self.flights.len();
        self.looks.looked(arrived as u32, Instant::now());
    }

    /// Whether a flight is over, and if so, whether all of it arrived.
    fn landed(&mut self, flight: &mut Flight) -> Option<bool> {
        let Some(opened) = self.open.get_mut(&flight.file) else {
            return Some(false);
        };
        flight
            .parts
            .retain(|part| !opened.arrived(part).unwrap_or(true));
        if flight.parts.is_empty() {
            return Some(true);
        }
        // Taken away again before anybody looked: by whoever is short of memory, or by a program that drops what it
        // has read. It does not come any more.
        opened.leave_gone_out(&mut flight.parts);
        if flight.parts.is_empty() {
            return Some(false);
        }
        if flight.since.elapsed() < PATIENCE {
            return None;
        }
        if flight.again {
            return Some(false);
        }
        flight.again = true;
        flight.since = Instant::now();
        let dev = opened.dev;
        let max_hint = self.devices.of(dev).max_hint;
        let opened = self.open.get_mut(&flight.file)?;
        opened.look_again();
        for part in &flight.parts {
            for part in opened.missing(part) {
                let _ = opened.hint(&part, max_hint);
            }
        }
        None
    }

    fn done(&self, id: RequestId, fetched: bool, complete: bool) {
        self.report(Event::Done {
            id,
            fetched,
            complete,
        });
    }

    fn report(&self, event: Event) {
        // Nobody left to tell: the session is over.
        let _ = self.events.send(event);
    }
}

/// Report a file that is open, on a device on which positions matter or not.
fn introduce(file: FileId, opened: &Opened, rotational: bool, events: &Sender<Event>) {
    let layout = if rotational {
        opened.layout()
    } else {
        Arc::default()
    };
    // Nobody left to tell: the session is over.
    let _ = events.send(Event::Opened {
        file,
        change: opened.change.clone(),
        layout,
        rotational: Some(rotational),
    });
}
