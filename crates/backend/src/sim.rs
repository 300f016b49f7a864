//! A machine in virtual time: a disk model, a page cache of limited size, files laid out on it.
//!
//! The simulated program and the [`Sim`] backend share one [`SimMachine`], as a real program and foreread share a kernel: pages fetched by
//! one are there for the other, and both wait in the same disk queue. Nothing here reads a clock, so equal inputs give equal results.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use foreread_disk::{Disk, Layout, Model, Request as DiskRequest};
use foreread_plan::{FileId, Kind, PAGE, Request, RequestId};

use crate::{Answer, Backend, DeviceFacts, Event, Outcome, Placed, Question, Standing};

type Page = (FileId, u64);

/// Names that are looked up at a time.
const LOOKS: usize = 32;

/// Result of a simulated read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadOutcome {
    /// All pages are in memory.
    Hit,
    /// Some pages are on their way or were just requested: repeat the read when time has passed.
    Wait,
}

/// The shared machine.
pub struct SimMachine {
    disk: Disk,
    rotational: bool,
    now: u64,
    capacity: usize,
    /// Start of each file on the device, in bytes.
    files: HashMap<FileId, u64>,
    /// Number of pages by file; files without an entry are endless.
    lengths: HashMap<FileId, u64>,
    /// When each resident page was last used, and the same the other way round.
    used: HashMap<Page, u64>,
    lru: BTreeMap<u64, Page>,
    clock: u64,
    under_way: HashMap<u64, Vec<Page>>,
    pending: HashSet<Page>,
    evicted: HashSet<Page>,
    next_disk_request: u64,
    fetched_pages: u64,
    /// Place of the inode or entries behind a name, in bytes on the device; true if they are in memory.
    names: HashMap<(FileId, Kind), (u64, bool)>,
    names_under_way: HashMap<u64, (FileId, Kind)>,
    named: HashSet<FileId>,
}

impl SimMachine {
    /// A machine with this disk, of `disk_bytes` spread over the whole stroke, and room for
    /// `capacity` pages of cache.
    pub fn new(model: Model, disk_bytes: u64, capacity: usize) -> Self {
        Self {
            disk: Disk::new(model, Layout::stretched(disk_bytes)),
            rotational: model == Model::Hdd7200,
            now: 0,
            capacity,
            files: HashMap::new(),
            lengths: HashMap::new(),
            used: HashMap::new(),
            lru: BTreeMap::new(),
            clock: 0,
            under_way: HashMap::new(),
            pending: HashSet::new(),
            evicted: HashSet::new(),
            next_disk_request: 0,
            fetched_pages: 0,
            names: HashMap::new(),
            names_under_way: HashMap::new(),
            named: HashSet::new(),
        }
    }

    /// Puts the target of a name at `place` on the device, in bytes.
    pub fn name(&mut self, file: FileId, kind: Kind, place: u64) {
        self.names.insert((file, kind), (place, false));
        self.named.insert(file);
    }

    /// The block in which an inode lies.
    fn block(&self, file: FileId) -> Option<u64> {
        let kinds = [Kind::Open, Kind::Stat].into_iter();
        let mut places = kinds.filter_map(|kind| self.names.get(&(file, kind)));
        places.next().map(|(place, _)| place / PAGE)
    }

    /// Marks all names in one block with this name as in memory.
    fn name_arrived(&mut self, name: (FileId, Kind)) {
        let Some(&(place, _)) = self.names.get(&name) else {
            return;
        };
        for (other, there) in self.names.values_mut() {
            *there |= *other / PAGE == place / PAGE;
        }
    }

    /// The program uses a name, and fetches its target if that is missing. A name without a place costs nothing.
    pub fn use_name(&mut self, file: FileId, kind: Kind) -> ReadOutcome {
        match self.names.get(&(file, kind)) {
            None | Some((_, true)) => ReadOutcome::Hit,
            Some(_) => {
                self.fetch_name(file, kind);
                ReadOutcome::Wait
            }
        }
    }

    /// Fetches the target of a name, unless its block is on its way. Returns the request to the disk.
    fn fetch_name(&mut self, file: FileId, kind: Kind) -> u64 {
        let place = |name: &(FileId, Kind)| self.names.get(name).map_or(0, |&(place, _)| place);
        let block = place(&(file, kind)) / PAGE;
        let same = |(_, name): &(&u64, &(FileId, Kind))| place(name) / PAGE == block;
        if let Some((&id, _)) = self.names_under_way.iter().find(same) {
            return id;
        }
        let place = place(&(file, kind));
        let id = self.submit(place, PAGE);
        self.names_under_way.insert(id, (file, kind));
        id
    }

    /// Ask the disk; the number of the request.
    fn submit(&mut self, offset: u64, len: u64) -> u64 {
        let id = self.next_disk_request;
        self.next_disk_request += 1;
        self.disk.submit(
            self.now,
            DiskRequest {
                id,
                offset,
                len: len as u32,
                write: false,
            },
        );
        id
    }

    /// Lay out a file from `start` bytes on the device.
    pub fn place(&mut self, file: FileId, start: u64) {
        self.files.insert(file, start);
    }

    /// Sets a file's number of pages.
    pub fn resize(&mut self, file: FileId, pages: u64) {
        self.lengths.insert(file, pages);
    }

    fn length(&self, file: FileId) -> u64 {
        self.lengths.get(&file).copied().unwrap_or(u64::MAX)
    }

    /// Pages in memory.
    pub fn resident_pages(&self) -> u64 {
        self.used.len() as u64
    }

    /// Pages fetched from the disk so far, by anyone.
    pub fn fetched_pages(&self) -> u64 {
        self.fetched_pages
    }

    /// Let time pass until `now` ns.
    pub fn advance(&mut self, now: u64) {
        self.now = self.now.max(now);
        for completion in self.disk.advance(self.now) {
            for page in self.under_way.remove(&completion.id).unwrap_or_default() {
                self.pending.remove(&page);
                self.touch(page);
            }
            if let Some(name) = self.names_under_way.remove(&completion.id) {
                self.name_arrived(name);
            }
        }
    }

    /// When something will next arrive, if anything is on its way.
    pub fn next_event(&self) -> Option<u64> {
        self.disk.next_event()
    }

    /// The program reads these pages, and fetches missing ones.
    pub fn read(&mut self, file: FileId, pages: Range<u64>) -> ReadOutcome {
        let missing = self.missing(file, pages.clone());
        let waits = pages
            .clone()
            .any(|page| self.pending.contains(&(file, page)));
        if missing.is_empty() && !waits {
            for page in pages {
                self.touch((file, page));
            }
            return ReadOutcome::Hit;
        }
        for run in missing {
            self.fetch(file, run);
        }
        ReadOutcome::Wait
    }

    /// Drop a page from memory, as pressure from elsewhere would.
    pub fn evict(&mut self, file: FileId, page: u64) {
        if let Some(at) = self.used.remove(&(file, page)) {
            self.lru.remove(&at);
            self.evicted.insert((file, page));
        }
    }

    /// Drops a page that is no longer needed: unlike an evicted one, it did not have to make room.
    fn discard(&mut self, page: Page) {
        if let Some(at) = self.used.remove(&page) {
            self.lru.remove(&at);
        }
    }

    fn touch(&mut self, page: Page) {
        self.clock += 1;
        self.evicted.remove(&page);
        if let Some(before) = self.used.insert(page, self.clock) {
            self.lru.remove(&before);
        }
        self.lru.insert(self.clock, page);
        while self.used.len() > self.capacity {
            if let Some((_, oldest)) = self.lru.pop_first() {
                self.used.remove(&oldest);
                self.evicted.insert(oldest);
            }
        }
    }

    /// The state of these pages.
    fn standing(&self, file: FileId, pages: Range<u64>, which: bool) -> Standing {
        let mut standing = Standing {
            resident: Some(0),
            evicted: Some(0),
            gone: Vec::new(),
        };
        for page in pages {
            let key = (file, page);
            let one = u64::from(self.used.contains_key(&key));
            standing.resident = standing.resident.map(|sum| sum + one);
            if !self.evicted.contains(&key) {
                continue;
            }
            standing.evicted = standing.evicted.map(|sum| sum + 1);
            match standing.gone.last_mut() {
                Some(run) if run.end == page => run.end += 1,
                _ if which => standing.gone.push(page..page + 1),
                _ => {}
            }
        }
        standing
    }

    /// Runs of pages neither in memory nor on their way.
    fn missing(&self, file: FileId, pages: Range<u64>) -> Vec<Range<u64>> {
        let mut runs: Vec<Range<u64>> = Vec::new();
        for page in pages {
            let key = (file, page);
            if self.used.contains_key(&key) || self.pending.contains(&key) {
                continue;
            }
            match runs.last_mut() {
                Some(run) if run.end == page => run.end += 1,
                _ => runs.push(page..page + 1),
            }
        }
        runs
    }

    fn fetch(&mut self, file: FileId, pages: Range<u64>) -> u64 {
        let start = self.files.get(&file).copied().unwrap_or(0);
        self.fetched_pages += pages.end - pages.start;
        let id = self.submit(start + pages.start * PAGE, (pages.end - pages.start) * PAGE);
        let pages: Vec<Page> = pages.map(|page| (file, page)).collect();
        self.pending.extend(&pages);
        self.under_way.insert(id, pages);
        id
    }
}

/// The sim backend: hints become requests to the shared machine's disk.
#[derive(Clone)]
pub struct Sim {
    machine: Arc<Mutex<SimMachine>>,
    flights: Vec<(RequestId, Vec<u64>)>,
    events: Vec<Event>,
    /// Questions, and when each is answered.
    questions: VecDeque<(u64, Question)>,
    /// Names that are looked up, and the requests to the disk; and those that wait for that.
    looks: Vec<(FileId, Kind, u64, Outcome)>,
    names: VecDeque<(FileId, Kind)>,
    delay: u64,
    /// Files that never answer.
    silent: HashSet<FileId>,
}

impl Sim {
    /// A backend on this machine.
    pub fn new(machine: Arc<Mutex<SimMachine>>) -> Self {
        Self {
            machine,
            flights: Vec::new(),
            events: Vec::new(),
            questions: VecDeque::new(),
            looks: Vec::new(),
            names: VecDeque::new(),
            delay: 0,
            silent: HashSet::new(),
        }
    }

    /// The same, where each question is answered `delay` ns after it was asked.
    pub fn with_delay(mut self, delay: u64) -> Self {
        self.delay = delay;
        self
    }

    /// The same, where this file is on a device of its own, and nothing that is asked about it or its name is answered.
    pub fn with_silent(mut self, file: FileId) -> Self {
        self.silent.insert(file);
        self
    }

    /// Have names looked up, as many at a time as may be.
    fn look_on(&mut self) {
        while self.looks.len() < LOOKS
            && let Some((file, kind)) = self.names.pop_front()
        {
            let mut machine = self.machine.lock().unwrap_or_else(PoisonError::into_inner);
            let outcome = match machine.names.get(&(file, kind)) {
                None => Outcome::Failed,
                Some((_, true)) => Outcome::InMemory,
                Some((_, false)) => {
                    let id = machine.fetch_name(file, kind);
                    // Among the names of one block, the first waits for it.
                    let outcome = match self.looks.iter().any(|one| one.2 == id) {
                        false => Outcome::Fetched,
                        true => Outcome::InMemory,
                    };
                    self.looks.push((file, kind, id, outcome));
                    continue;
                }
            };
            self.events.push(Event::Looked {
                file,
                kind,
                outcome,
            });
        }
    }

    /// Answer the questions that are due.
    fn answer(&mut self, events: &mut Vec<Event>) {
        let machine = self.machine.lock().unwrap_or_else(PoisonError::into_inner);
        while let Some((due, _)) = self.questions.front()
            && *due <= machine.now
            && let Some((_, question)) = self.questions.pop_front()
        {
            if self.silent.contains(&question.file) {
                continue;
            }
            let parts = question.parts.iter();
            let answer = Answer {
                length: Some(machine.length(question.file)),
                parts: parts
                    .map(|part| machine.standing(question.file, part.clone(), question.which))
                    .collect(),
            };
            events.push(Event::Answered {
                ticket: question.ticket,
                answer,
            });
        }
    }

    fn machine(&self) -> MutexGuard<'_, SimMachine> {
        self.machine.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Backend for Sim {
    fn device(&mut self, file: FileId) -> Option<u64> {
        if self.silent.contains(&file) {
            return Some(1);
        }
        let machine = self.machine();
        let is_known = machine.files.contains_key(&file) || machine.named.contains(&file);
        is_known.then_some(0)
    }

    fn block(&mut self, file: FileId) -> Option<u64> {
        self.machine().block(file)
    }

    fn facts(&mut self, _: u64) -> DeviceFacts {
        let machine = self.machine();
        DeviceFacts {
            name: machine.disk.model().name().into(),
            positions: (!machine.rotational).then_some(false),
        }
    }

    fn prepare(&mut self, file: FileId) {
        let start = self.machine().files.get(&file).copied();
        let rotational = Some(self.machine().rotational);
        self.events.push(match start {
            Some(physical) => Event::Opened {
                file,
                change: None,
                layout: Arc::new([Placed {
                    logical: 0,
                    physical,
                    len: u64::MAX - physical,
                }]),
                rotational,
            },
            None => Event::Gone {
                file,
                why: "not on this disk".into(),
            },
        });
    }

    fn submit(&mut self, request: Request) {
        let length = self.machine().length(request.file);
        let Range { start, end } = request.pages;
        if end > length {
            self.events.push(Event::Short {
                id: request.id,
                file: request.file,
                pages: start.max(length)..end,
            });
        }
        let mut machine = self.machine();
        let runs = machine.missing(request.file, start..end.min(length));
        let ids = runs
            .iter()
            .map(|run| machine.fetch(request.file, run.clone()))
            .collect();
        drop(machine);
        self.events
            .extend(runs.into_iter().map(|pages| Event::Issued {
                id: request.id,
                file: request.file,
                pages,
            }));
        self.flights.push((request.id, ids));
    }

    fn poll(&mut self, events: &mut Vec<Event>) {
        // Issued events come before completed ones.
        events.append(&mut self.events);
        self.answer(events);
        let machine = self.machine.lock().unwrap_or_else(PoisonError::into_inner);
        self.looks.retain(|&(file, kind, id, outcome)| {
            let over = !machine.names_under_way.contains_key(&id);
            if over {
                events.push(Event::Looked {
                    file,
                    kind,
                    outcome,
                });
            }
            !over
        });
        drop(machine);
        self.look_on();
        events.append(&mut self.events);
        let machine = self.machine.lock().unwrap_or_else(PoisonError::into_inner);
        self.flights.retain(|(id, parts)| {
            let over = parts
                .iter()
                .all(|part| !machine.under_way.contains_key(part));
            if over {
                events.push(Event::Done {
                    id: *id,
                    fetched: !parts.is_empty(),
                    complete: true,
                });
            }
            !over
        });
    }

    fn look(&mut self, names: &[(FileId, Kind)]) {
        let answering = names.iter().filter(|(file, _)| !self.silent.contains(file));
        self.names.extend(answering);
        self.look_on();
    }

    fn ask(&mut self, question: Question) {
        let now = self.machine().now;
        self.questions.push_back((now + self.delay, question));
    }

    fn discard(&mut self, file: FileId, pages: Range<u64>) {
        let mut machine = self.machine();
        for page in pages {
            machine.discard((file, page));
        }
    }
}
