//! The loop, one step at a time.
//!
//! Data flow of [`Engine::step`]: events of the backend → ledger and scheduler; disclosures of each strand's source → its plan queue;
//! requests of the scheduler → backend. [`Engine::see`] receives the program's reads. Times are ns since the start of the session, given by
//! the caller, so the same engine runs in real time and on the sim backend.
//!
//! Invariant: the session's account is the sum of its strands'.

mod account;
mod ask;
pub(crate) mod look;
mod observe;
mod submit;
mod walk;

use std::ops::Range;

use foreread_backend::{Backend, Change, DeviceFacts, Event};
use foreread_plan::{Expected, FileId, Kind, Name, PAGE, RequestId};
use foreread_sched::{Asked, DeviceId, Profile, Scheduler, StrandId};
use foreread_sources::{Nature, Outlook, Source};
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;

use crate::site::{Site, Table};
use crate::strand::Strand;
use crate::{Ledger, NameLedger, StrandReport};
use ask::{Purpose, Questions};

/// Entries taken from the source per step. A program may read thousands of them from memory before the next step.
pub(crate) const DISCLOSE: usize = 4096;
/// Entries taken in the first step. It takes fewer, so that the program's first reads are requested at once.
pub(crate) const FIRST: usize = 256;
/// Limit of entries that wait in a queue. Beyond it nothing is disclosed: on a device that is served in the program's order they would wait
/// there without any use. Filling a queue to its end took 110 ms of processor time beside a program of a million hot reads; with this limit
/// it takes 25 ms.
const BACKLOG: usize = 4 * DISCLOSE;
/// Sizes of a session.
pub type Config = foreread_sched::Config;

/// The end of a session.
#[derive(Clone, Debug)]
pub struct Report {
    /// The closed account: the sum of the strands'.
    pub ledger: Ledger,
    /// The ledger of names that were looked up ahead: the sum over all strands.
    pub names: NameLedger,
    /// The accounts of the strands, in the order in which they were added.
    pub strands: Vec<StrandReport>,
    /// Reads observed, and how many of them were foreseen.
    pub reads: u64,
    /// Reads that the plan knew of.
    pub foreseen: u64,
    /// Files that differ from the record.
    pub changed: Vec<(FileId, Change)>,
    /// Files that could not be fetched, and why.
    pub gone: Vec<(FileId, String)>,
    /// Names of the devices fetched from.
    pub devices: Vec<String>,
    /// Devices, by `st_dev`, with the session's finding on whether distance costs time there.
    pub found: Vec<(u64, bool)>,
}

/// Runs of pages; mostly one.
type Parts = SmallVec<[(FileId, Range<u64>); 1]>;

/// Strands, and the device that each has asked; mostly one.
type Askers = SmallVec<[(usize, DeviceId); 1]>;

/// State of a session.
pub struct Engine<B> {
    /// By their numbers in the scheduler.
    strands: Vec<Strand>,
    /// Measures the free memory, up to which the budget may rise; `None` if it may not rise.
    free_pages: Option<fn() -> u64>,
    scheduler: Scheduler,
    backend: B,
    table: Table,
    closed: bool,
    calm: u32,
    /// Waiting of all reads that needed their device, whether avoided by prefetching or not, in ns.
    gained: u64,
    /// Reads without times that are not looked up yet, and that are all to be looked up.
    passed_up: u32,
    alert: u32,
    /// Parts of each request that are under way, and the strand it was made for.
    parts: FxHashMap<RequestId, Parts>,
    questions: Questions,
    /// When the pages that wait to be read are to be looked for.
    look_at: u64,
    /// Kept for their room.
    events: Vec<Event>,
    disclosed: Vec<Expected>,
    names: Vec<Name>,
    looks: Vec<(FileId, Kind)>,
    due: Vec<(Name, DeviceId)>,
    /// The strands that names under way were asked for, and the devices.
    walks: FxHashMap<(FileId, Kind), Askers>,
    /// Files that the program has written itself.
    written: FxHashSet<FileId>,
    reads: u64,
    foreseen: u64,
}

impl<B: Backend> Engine<B> {
    /// A session of no strands yet, that has `backend` fetch.
    pub fn new(backend: B, config: Config) -> Self {
        Self {
            strands: Vec::new(),
            calm: config.calm.max(1),
            free_pages: config.free_pages,
            scheduler: Scheduler::new(config),
            backend,
            table: Table::default(),
            closed: false,
            gained: 0,
            passed_up: 0,
            alert: 0,
            parts: FxHashMap::default(),
            questions: Questions::default(),
            look_at: 0,
            events: Vec::new(),
            disclosed: Vec::new(),
            names: Vec::new(),
            looks: Vec::new(),
            due: Vec::new(),
            walks: FxHashMap::default(),
            written: FxHashSet::default(),
            reads: 0,
            foreseen: 0,
        }
    }

    /// Adds a source, called by this name in reports. Reads that no strand had foreseen count as missed by the first strand.
    pub fn with_strand(mut self, name: &'static str, source: Box<dyn Source>) -> Self {
        self.add_strand(name, source);
        self
    }

    /// As [`Engine::with_strand`], of an engine that runs.
    pub fn add_strand(&mut self, name: &'static str, source: Box<dyn Source>) {
        let is_guess = source.nature() == Nature::Guess;
        let id = self.scheduler.add(is_guess);
        let shown = source.shown();
        self.scheduler.shown(id, shown.right, shown.wrong);
        self.strands.push(Strand::new(id, name, source));
    }

    /// Uses measured profiles: `profiles` is asked once for each device met, by its number and facts. If it has none, the built-in
    /// profile of the device's kind is used.
    pub fn with_profiles(
        mut self,
        profiles: impl Fn(u64, &DeviceFacts) -> Option<Profile> + Send + 'static,
    ) -> Self {
        self.table.profiles = Some(Box::new(profiles));
        self
    }

    /// Sets the measure of the program's processor time, in ns (`None` if it becomes unknown). Devices that are served in passes need it.
    /// Without it every program counts as computing.
    pub fn with_computed(mut self, computed: impl Fn() -> Option<u64> + Send + 'static) -> Self {
        self.table.computed = Some(Box::new(computed));
        self
    }

    /// Pages that may lie in memory unread, at present.
    pub fn target(&mut self) -> u64 {
        self.scheduler.budget().target()
    }

    /// True if reads may be reported late: nothing that the sources have disclosed is left to fetch.
    pub fn rests(&self) -> bool {
        let walks = |one: &Strand| !one.rests() && !one.walker.rests();
        self.scheduler.rests() && !self.strands.iter().any(walks)
    }

    /// Does the work due at `now`. True if anything is or will be in progress, so that the caller returns soon.
    pub fn step(&mut self, now: u64) -> bool {
        self.collect(now);
        if self.closed || self.strands.iter().all(Strand::rests) {
            return self.scheduler.in_flight() > 0;
        }
        for at in 0..self.strands.len() {
            while let Some(asked) = self.scheduler.passed(StrandId(at)) {
                self.pass(at, &asked);
            }
        }
        if now >= self.look_at {
            self.look_ahead(now);
        }
        for at in 0..self.strands.len() {
            let strand = &mut self.strands[at];
            let id = strand.id;
            for file in strand.beyond.due(now) {
                self.ask(file, Vec::new(), Purpose::Beyond(id));
            }
        }
        for (file, pages) in self.scheduler.give_back() {
            for strand in &mut self.strands {
                strand.ledger += strand.pages.give_back(file, &pages).into();
            }
            self.backend.discard(file, pages);
        }
        let (mut more, mut any) = (false, false);
        for at in 0..self.strands.len() {
            let strand = &self.strands[at];
            let (id, is_ahead) = (strand.id, !strand.rests());
            self.scheduler.follow(id, is_ahead);
            if is_ahead {
                any = true;
                let most = match self.scheduler.queue(id).end() {
                    0 => FIRST,
                    _ => DISCLOSE,
                };
                more |= self.disclose(at, most);
                more |= self.walk(at, now);
            }
        }
        if !any {
            return self.scheduler.in_flight() > 0;
        }
        let room = self.backend.room().unwrap_or(u64::MAX);
        self.scheduler.budget().limit(room);
        if let Some(free_pages) = self.free_pages
            && self.scheduler.budget().presses()
        {
            self.scheduler.budget().rise(free_pages());
        }
        let mut site = Site {
            table: &mut self.table,
            backend: &mut self.backend,
        };
        let requests = self.scheduler.next(now, &mut site);
        let started = !requests.is_empty();
        self.submit(requests);
        let busy = self.scheduler.in_flight() > 0 || self.scheduler.is_due();
        more || started || busy
    }

    /// True if there is no work until something is observed.
    pub fn is_quiet(&self) -> bool {
        self.strands.iter().all(Strand::rests) && self.scheduler.in_flight() == 0
    }

    /// Waiting of all reads that needed their device, whether avoided by prefetching or not, in ns.
    pub fn gained(&self) -> u64 {
        self.gained
    }

    /// True if the program is within a plan: its next read is foreseen.
    pub fn is_foreseen(&self) -> bool {
        self.strands.iter().any(Strand::foresees)
    }

    /// The program has ended: nothing more is fetched or looked up; its last reads still enter the ledger.
    pub fn close(&mut self) {
        self.closed = true;
    }

    /// Close the account; nothing is to be asked of the engine after that.
    pub fn finish(&mut self, now: u64) -> Report {
        self.collect(now);
        self.settle_doubts();
        for strand in &mut self.strands {
            strand.ledger += strand.pages.rest().into();
            strand.walker.close();
        }
        Report {
            ledger: self.ledger(),
            names: self.strands.iter().map(|one| one.walker.ledger()).sum(),
            strands: self.strands.iter().map(Strand::report).collect(),
            reads: self.reads,
            foreseen: self.foreseen,
            devices: self.table.devices(),
            found: self.table.found(),
            changed: std::mem::take(&mut self.table.changed),
            gone: std::mem::take(&mut self.table.gone),
        }
    }

    /// Take the backend's events, as [`Engine::step`] does first.
    pub fn collect(&mut self, now: u64) {
        let mut events = std::mem::take(&mut self.events);
        self.backend.poll(&mut events);
        for event in events.drain(..) {
            match event {
                Event::Opened {
                    file,
                    change,
                    layout,
                    rotational,
                } => {
                    self.table.opened(file, change, &layout, rotational);
                    self.placed(file);
                }
                Event::Changed { file, change } => self.table.changed.push((file, change)),
                Event::Unaided { file } => self.unaided(file),
                Event::Gone { file, why } => {
                    self.table.lost(file, why);
                    self.placed(file);
                }
                Event::Issued { id, file, pages } => {
                    self.issued(id, file, &pages);
                    let parts = self.parts.entry(id).or_default();
                    // Without the kernel's read-ahead each part is a request of its own, and saves the program one.
                    if parts.is_empty() || self.table.is_unaided(file) {
                        self.gained = self.gained.saturating_add(self.scheduler.service_ns(id));
                    }
                    parts.push((file, pages));
                }
                Event::Short { id, file, pages } => {
                    // A file may be written by this run before it is read, and then its pages are in memory.
                    let strand = self.made_for(id);
                    if let Some(strand) = strand.and_then(|at| self.strands.get_mut(at))
                        && strand.nature == Nature::Told
                        && self.scheduler.past_end(id, file, pages.clone())
                    {
                        strand.beyond.add(id, file, pages);
                    }
                }
                Event::Done { id, fetched, .. } => {
                    let strand = self.made_for(id);
                    for (file, pages) in self.parts.remove(&id).unwrap_or_default() {
                        self.scheduler.arrived(id, file, &pages);
                        if let Some(at) = strand {
                            self.strands[at].pages.arrive(file, &pages, now);
                        }
                    }
                    self.scheduler.completed(id, fetched, now);
                }
                Event::Looked {
                    file,
                    kind,
                    outcome,
                } => self.looked(file, kind, outcome, now),
                Event::Answered { ticket, answer } => self.answered(ticket, &answer),
            }
        }
        self.events = events;
    }

    /// The strand that a request was made for.
    fn made_for(&self, id: RequestId) -> Option<usize> {
        self.scheduler.strand(id).map(|strand| strand.0)
    }

    /// These pages of a request come from the device.
    fn issued(&mut self, id: RequestId, file: FileId, pages: &Range<u64>) {
        let Some(at) = self.made_for(id) else {
            return;
        };
        for (other, strand) in self.strands.iter_mut().enumerate() {
            if other == at {
                let issued = strand.pages.issue(file, pages);
                strand.ledger.issued += issued.pages * PAGE;
                strand.ledger.evicted += issued.again * PAGE;
            } else {
                strand.give_up(file, pages);
            }
        }
        self.want(id, file, pages);
    }

    /// The program has passed a request of a strand: its unread pages are not waited for any more. They may still be read.
    fn pass(&mut self, at: usize, asked: &Asked) {
        let file = asked.request.file;
        let (strand, scheduler) = (&mut self.strands[at], &mut self.scheduler);
        strand.beyond.forget(asked);
        for part in asked.wanted() {
            let pages = &mut strand.pages;
            pages.pass(file, &part, |run| scheduler.pass(file, run));
        }
        // If infill can be evicted again, its arrival is remembered for that.
        if !scheduler.gives_back() {
            for gap in &asked.infill {
                strand.pages.pass(file, gap, |_| ());
            }
        }
    }

    fn placed(&mut self, file: FileId) {
        let mut site = Site {
            table: &mut self.table,
            backend: &mut self.backend,
        };
        self.scheduler.placed(file, &mut site);
        site.answered(file);
    }

    /// Takes up to `most` disclosures of a strand. True if more are available.
    fn disclose(&mut self, at: usize, most: usize) -> bool {
        let strand = &mut self.strands[at];
        if strand.exhausted {
            return false;
        }
        let (id, disclosed) = (strand.id, &mut self.disclosed);
        disclosed.clear();
        let mut room = room(&mut self.scheduler, id, most);
        let mut outlook = strand.source.disclose(room, disclosed);
        if outlook == Outlook::Void {
            self.scheduler.restart(id);
            room = self::room(&mut self.scheduler, id, most);
            outlook = strand.source.disclose(room, disclosed);
        }
        strand.exhausted = outlook == Outlook::End;
        let queue = self.scheduler.queue(id);
        strand.walker.disclosed(disclosed.len() as u64, queue.end());
        for one in disclosed.iter_mut() {
            self.table.aid(one);
            queue.push(one);
        }
        disclosed.len() == most
    }
}

/// The number of disclosures that may be accepted of a strand, out of this many.
fn room(scheduler: &mut Scheduler, strand: StrandId, most: usize) -> usize {
    let room = scheduler.queue(strand).room().min(most);
    room.min(BACKLOG.saturating_sub(scheduler.waiting(strand) as usize))
}
