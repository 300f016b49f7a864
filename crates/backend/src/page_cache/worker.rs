//! A thread that gives hints and watches for their pages to arrive.
//!
//! Invariants: every `Job::Fetch` is answered by exactly one `Event::Done`; between jobs and looks no file is open but
//! those in [`held`](super::held).

use std::collections::{HashSet, VecDeque};
use std::ops::Range;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::thread::{JoinHandle, Thread};
use std::time::{Duration, Instant};

use foreread_plan::{FileId, Request, RequestId};
use foreread_sys::file::FileFacts;
use foreread_sys::processor::Aside;

use super::context::Context;
use super::devices::Devices;
use super::file::{Opened, SMALL_HINT, changed};
use super::files::Files;
use super::held::Held;
use super::joined::Joined;
use super::looks::Looks;
use crate::{Event, MOVING_HEAD};

/// Requests found still under way that end a look: each costs a call, and may cost opening its file. 3,000 hints on a
/// local SSD took as much of the processor with 4 and 16.
const STRAGGLERS: usize = 8;
/// Between looks at files that are opened for that: to open one, look and close it takes about 10 µs of the processor.
const REOPENED: Duration = Duration::from_millis(1);
/// Time after which a request counts as lost and is repeated: longer than 128 requests of 8 ms each on a disk with a moving head.
const PATIENCE: Duration = Duration::from_secs(2);

/// A job of a worker.
pub(super) enum Job {
    Prepare(FileId),
    Fetch(Request),
    /// Small files that are kin.
    Together(Vec<Request>),
    Discard(FileId, Range<u64>),
    Forget(FileId),
}

/// A request on its way.
struct Flight {
    id: RequestId,
    file: FileId,
    /// Device and inode of the file that was hinted about.
    place: (u64, u64),
    /// Parts that have not arrived yet.
    parts: Vec<Range<u64>>,
    since: Instant,
    again: bool,
}

/// State of a worker.
pub(super) struct Worker {
    files: Files,
    events: Sender<Event>,
    /// The thread that takes the events.
    taker: Thread,
    held: Held,
    reported: HashSet<FileId>,
    /// Files that could not be opened; each was reported.
    gone: HashSet<FileId>,
    /// Files of file systems that keep nothing in the page cache.
    refused: HashSet<FileId>,
    /// Files opened while their device was being tested, to be reported afterwards.
    unreported: Vec<FileId>,
    /// Finds that out.
    prover: Option<JoinHandle<()>>,
    devices: Devices,
    together: Joined,
    flights: VecDeque<Flight>,
    looks: Looks,
    aside: Aside,
}

impl Worker {
    /// A worker, created by the thread that takes its events.
    pub(super) fn new(context: &Context) -> Self {
        Self {
            files: context.files.clone(),
            events: context.event.clone(),
            taker: std::thread::current(),
            held: Held::default(),
            reported: HashSet::new(),
            gone: HashSet::new(),
            refused: HashSet::new(),
            unreported: Vec::new(),
            prover: None,
            devices: context.devices.clone(),
            together: Joined::default(),
            flights: VecDeque::new(),
            looks: Looks::new(Instant::now()),
            aside: context.aside.clone(),
        }
    }

    /// Work until the backend is dropped.
    pub(super) fn run(mut self, inbox: &Receiver<Job>) {
        loop {
            self.aside.keep();
            let job = match self.due() {
                None => inbox.recv().map_err(|_| RecvTimeoutError::Disconnected),
                Some(due) => inbox.recv_timeout(due.saturating_duration_since(Instant::now())),
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
                self.held.settle(file);
            }
            let now = Instant::now();
            if self.look_due().is_some_and(|due| due <= now) {
                self.look();
            }
            self.held.close_idle(now);
        }
        if let Some(prover) = self.prover {
            // A thread that panicked has reported nothing.
            let _ = prover.join();
        }
    }

    /// Time of the next work, if no job comes before.
    fn due(&self) -> Option<Instant> {
        let due = [self.look_due(), self.held.idle_at()];
        due.into_iter().flatten().min()
    }

    /// Time of the next check for arrivals: less often if files have to be opened for it.
    fn look_due(&self) -> Option<Instant> {
        let first = self.flights.front()?;
        let due = self.looks.due(self.flights.len());
        Some(if self.held.has(first.file) {
            due
        } else {
            due.max(self.looks.last() + REOPENED)
        })
    }

    fn take(&mut self, job: Job) {
        match job {
            Job::Prepare(file) => {
                self.prepare(file);
                self.held.settle(file);
            }
            Job::Fetch(request) => {
                self.held.requested(request.file, Instant::now());
                let parts = self.issue(&request).unwrap_or_default();
                self.watch(&request, parts);
                self.held.settle(request.file);
            }
            Job::Together(requests) => self.fetch_together(&requests),
            Job::Forget(file) => {
                self.held.close(file);
                for known in [&mut self.reported, &mut self.gone, &mut self.refused] {
                    known.remove(&file);
                }
            }
            Job::Discard(file, pages) => {
                if self.ready(file)
                    && let Some(opened) = self.held.get(file)
                {
                    opened.discard(&pages);
                    self.forget(file, &pages);
                }
                self.held.settle(file);
            }
        }
    }

    /// Ends watching these pages: a quick program has read them before the check, and they will not be seen to arrive. If they were waited
    /// for, they would be fetched again.
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

    /// Brings a file's metadata into memory. The file is opened only if there is something to report.
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

    /// Opens the file if necessary; reports it the first time, or when it is known whether positions matter on its device.
    fn ready(&mut self, file: FileId) -> bool {
        if !self.hold(file) {
            return false;
        }
        if let Some(opened) = self.held.get(file)
            && !self.reported.contains(&file)
        {
            match self.devices.positions(opened.place.0) {
                Some(rotational) => {
                    self.reported.insert(file);
                    introduce(file, opened, rotational, &self.events);
                    // In order of position, nothing of the file is fetched before its place is known.
                    self.taker.unpark();
                }
                None if self.devices.claim_proof(opened.place.0) => {
                    self.reported.insert(file);
                    let opened = opened.twin();
                    self.prove(file, opened);
                }
                None => self.unreported.push(file),
            }
        }
        true
    }

    /// Tests whether distance costs time on a file's device that claims so: many virtual disks do so wrongly. The test takes milliseconds
    /// if the claim is right, so it runs in its own thread and other requests do not wait.
    fn prove(&mut self, file: FileId, opened: Opened) {
        let (devices, events) = (self.devices.clone(), self.events.clone());
        let taker = self.taker.clone();
        let prove = move || {
            let rotational = opened.is_slow(MOVING_HEAD).unwrap_or(true);
            devices.assume(opened.place.0, rotational);
            introduce(file, &opened, rotational, &events);
            taker.unpark();
        };
        let thread = foreread_sys::thread::builder("foreread-hint-p");
        match thread.spawn(prove) {
            Ok(prover) => self.prover = Some(prover),
            // Then the device's word has to do.
            Err(_) => {
                self.reported.remove(&file);
                if let Some(opened) = self.held.get(file) {
                    self.devices.assume(opened.place.0, true);
                }
                self.unreported.push(file);
            }
        }
    }

    /// Opens the file if necessary; reports only errors.
    fn hold(&mut self, file: FileId) -> bool {
        if self.held.has(file) {
            return true;
        }
        match self.files.get(file).map(Opened::open) {
            Some(Ok(opened)) => {
                self.held.open(file, opened);
                self.gone.remove(&file);
                true
            }
            Some(Err(why)) => {
                self.reported.remove(&file);
                if self.gone.insert(file) {
                    self.report(Event::Gone {
                        file,
                        why: why.to_string(),
                    });
                }
                false
            }
            None => false,
        }
    }

    /// Watches for the arrival of a request's missing parts.
    fn watch(&mut self, request: &Request, parts: Vec<Range<u64>>) {
        let place = self.held.get(request.file).map(|opened| opened.place);
        let Some(place) = place.filter(|_| !parts.is_empty()) else {
            self.done(request.id, !parts.is_empty(), parts.is_empty());
            return;
        };
        let since = Instant::now();
        if self.flights.is_empty() {
            self.looks.begin(since);
        }
        self.flights.push_back(Flight {
            id: request.id,
            file: request.file,
            place,
            parts,
            since,
            again: false,
        });
    }

    /// Fetches the missing parts of these requests, which are for small files.
    fn fetch_together(&mut self, requests: &[Request]) {
        let missing: Vec<_> = requests
            .iter()
            .map(|request| {
                self.held.requested(request.file, Instant::now());
                let events = self.events.clone();
                let opened = self.open_for(request)?;
                Some(opened.announce_missing(request, &events))
            })
            .map(Option::unwrap_or_default)
            .collect();
        let joined = self.together.hint(&self.held, requests, &missing);
        for (request, mut parts) in requests.iter().zip(missing) {
            if !joined && let Some(opened) = self.held.get(request.file) {
                parts.retain(|part| opened.hint(part, SMALL_HINT).is_ok());
            }
            self.watch(request, parts);
            self.held.settle(request.file);
        }
    }

    /// Requests the missing pages of a request. Returns the requested parts.
    fn issue(&mut self, request: &Request) -> Option<Vec<Range<u64>>> {
        let dev = self.open_for(request)?.place.0;
        let max_hint = self.devices.of(dev).max_hint;
        let opened = self.held.get_mut(request.file)?;
        Some(opened.hint_missing(request, max_hint, &self.events))
    }

    /// The open file of a request, if its read pages stay in memory.
    fn open_for(&mut self, request: &Request) -> Option<&mut Opened> {
        let was_open = self.held.has(request.file);
        if !self.ready(request.file) {
            return None;
        }
        let opened = self.held.get_mut(request.file)?;
        if was_open {
            opened.look_again();
        }
        if !keeps(&self.devices, opened, request, &self.events) {
            let file = request.file;
            if self.refused.insert(file) {
                let why = "its file system keeps no page that is read in memory".to_owned();
                self.report(Event::Gone { file, why });
            }
            return None;
        }
        self.held.get_mut(request.file)
    }

    /// Checks for arrivals, oldest first. A few unfinished requests end the check.
    fn look(&mut self) {
        let mut waiting = Vec::new();
        let before = self.flights.len();
        while waiting.len() < STRAGGLERS
            && let Some(mut flight) = self.flights.pop_front()
        {
            let file = flight.file;
            match self.landed(&mut flight) {
                None => waiting.push(flight),
                Some(complete) => self.done(flight.id, true, complete),
            }
            // The file stays open if the next request is for the same one.
            if self.flights.front().is_none_or(|next| next.file != file) {
                self.held.settle(file);
            }
        }
        for flight in waiting.into_iter().rev() {
            self.flights.push_front(flight);
        }
        let arrived = before - self.flights.len();
        self.looks.looked(arrived as u32, Instant::now());
    }

    /// True if a request is complete and all of it arrived, false if complete without that; `None` if it is not complete.
    fn landed(&mut self, flight: &mut Flight) -> Option<bool> {
        if !self.hold(flight.file) {
            return Some(false);
        }
        let opened = self.held.get_mut(flight.file)?;
        if opened.place != flight.place {
            // Another file has its name.
            return Some(false);
        }
        flight
            .parts
            .retain(|part| !opened.arrived(part).unwrap_or(true));
        if flight.parts.is_empty() {
            return Some(true);
        }
        // Evicted again before the check, because memory is short or the program dropped the pages. They will not arrive any more.
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
        let max_hint = self.devices.of(opened.place.0).max_hint;
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
        // The session may be over.
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
    // The session may be over.
    let _ = events.send(Event::Opened {
        file,
        change: opened.change.clone(),
        layout,
        rotational: Some(rotational),
    });
}

/// Whether read pages of a file stay in the page cache: known for its device, or tested with the first page of the first request, which has
/// then arrived.
fn keeps(
    devices: &Devices,
    opened: &mut Opened,
    request: &Request,
    events: &Sender<Event>,
) -> bool {
    let dev = opened.place.0;
    if let Some(known) = devices.keeps(dev) {
        return known;
    }
    let pages = request.pages.start..request.pages.start + 1;
    let was_there = opened.missing(&pages).is_empty();
    let Some(found) = opened.keeps(pages.start) else {
        return true;
    };
    devices.found(dev, found);
    if found && !was_there {
        // The session may be over.
        let _ = events.send(Event::Issued {
            id: request.id,
            file: request.file,
            pages,
        });
    }
    found
}
