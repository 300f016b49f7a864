//! The loop, one step at a time.
//!
//! Data flow of [`Engine::step`]: backend events in → ledger and scheduler; disclosures from
//! the source → plan queue; requests from the scheduler → backend. [`Engine::observe`] tells where the program is.
//! Time is ns since the session began, given by the caller: the same engine runs in real time
//! and on the sim backend.
//!
//! Invariant: each page issued is in exactly one of `pages` (not read yet) or a column of the ledger.

mod look;

use std::ops::Range;

use foreread_backend::{Backend, Change, DeviceFacts, Event};
use foreread_plan::{Access, Expected, FileId, Kind, PAGE, Pattern, RequestId};
use foreread_sched::{Asked, Profile, Scheduler};
use foreread_sources::{Nature, Outlook, Source};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use crate::Ledger;
use crate::beyond::Beyond;
use crate::pages::Pages;
use crate::site::{Site, Table};
use crate::survey::{HEAD, Head, sample};
use crate::track::{Course, Track};
use crate::upkeep::{STREAMED, Upkeep, WAIT};
use crate::worth::Worth;

/// Disclosures taken from the source in one step, and in the very first: what the program reads at once is not kept
/// waiting for the rest.
pub(crate) const DISCLOSE: usize = 4096;
pub(crate) const FIRST: usize = 256;
/// Entries that wait to be looked at, beyond which nothing more is disclosed: on a device whose order is the
/// program's they would lie there for nothing.
const BACKLOG: usize = 4 * DISCLOSE;
/// Pages looked at on both sides of one that seems to have been evicted: eviction takes many at a time.
const AROUND: u64 = 512;
/// Of the reads that do not tell whether they waited, one in this many is looked up.
const LOOK_UP: u32 = 8;
/// And all of the next so many after one whose pages were gone.
const ALERT: u32 = 64;

/// Sizes of a session.
pub type Config = foreread_sched::Config;

/// What a session is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Keeping ahead of the program.
    Ahead,
    /// The program has left the plan; looking for the place again.
    Lost,
    /// The program has left the plan for good. Nothing more is fetched or needs observing.
    GaveUp,
    /// What was looked at of the plan was in memory already, or foreread has used more processor time than its reads
    /// gained. Nothing is fetched or needs observing, until [`Engine::resume`].
    Hot,
    /// All that could be fetched ahead has been, and was read; what the program has read since
    /// next to never waited. Nothing more needs observing.
    Finished,
}

/// The end of a session.
#[derive(Clone, Debug)]
pub struct Report {
    /// The closed account.
    pub ledger: Ledger,
    /// What the session was doing at the end.
    pub phase: Phase,
    /// Reads observed, and how many of them were foreseen.
    pub reads: u64,
    /// Reads that the plan knew of.
    pub foreseen: u64,
    /// Of the bytes missed, those by reads that began after all that the plan names had been found in memory.
    pub missed_hot: u64,
    /// Times the program was lost and found again.
    pub found_again: u64,
    /// Whether the plan was found in memory before anything was done.
    pub was_hot: bool,
    /// Files that differ from the record.
    pub changed: Vec<(FileId, Change)>,
    /// Files that could not be fetched, and why.
    pub gone: Vec<(FileId, String)>,
    /// Names of the devices fetched from.
    pub devices: Vec<String>,
}

/// Runs of pages; mostly one.
type Parts = SmallVec<[(FileId, Range<u64>); 1]>;

/// One session's state.
pub struct Engine<B> {
    source: Box<dyn Source>,
    scheduler: Scheduler,
    backend: B,
    table: Table,
    pages: Pages,
    ledger: Ledger,
    track: Track,
    phase: Phase,
    closed: bool,
    upkeep: Upkeep,
    worth: Worth,
    /// Whether all of the plan has been fetched and read: what comes now is in no plan yet.
    ran_out: bool,
    /// Reads without times that are not looked up yet, and that are all to be looked up.
    passed_up: u32,
    alert: u32,
    /// Parts of each request that are under way.
    parts: FxHashMap<RequestId, Parts>,
    /// What was fetched before anything was scheduled.
    head: Option<Head>,
    beyond: Beyond,
    /// When the pages that wait to be read are to be looked for.
    look_at: u64,
    /// Kept for their room.
    events: Vec<Event>,
    disclosed: Vec<Expected>,
    exhausted: bool,
    /// When the plan was known to be in memory, in ns.
    hot_since: Option<u64>,
    missed_hot: u64,
    reads: u64,
    foreseen: u64,
    found_again: u64,
    was_hot: bool,
}

impl<B: Backend> Engine<B> {
    /// A session that follows `source` through `backend`.
    pub fn new(source: Box<dyn Source>, backend: B, config: Config) -> Self {
        Self {
            source,
            scheduler: Scheduler::new(config),
            backend,
            table: Table::default(),
            pages: Pages::default(),
            ledger: Ledger::default(),
            track: Track::default(),
            phase: Phase::Ahead,
            closed: false,
            upkeep: Upkeep::default(),
            worth: Worth::default(),
            ran_out: false,
            passed_up: 0,
            alert: 0,
            parts: FxHashMap::default(),
            head: None,
            beyond: Beyond::default(),
            look_at: 0,
            events: Vec::new(),
            disclosed: Vec::new(),
            exhausted: false,
            hot_since: None,
            missed_hot: 0,
            reads: 0,
            foreseen: 0,
            found_again: 0,
            was_hot: false,
        }
    }

    /// Use measured profiles: `profiles` is asked once for each device met, by its number and what is known of
    /// it, and where it knows none the built-in profile of the device's kind holds.
    pub fn with_profiles(
        mut self,
        profiles: impl Fn(u64, &DeviceFacts) -> Option<Profile> + Send + 'static,
    ) -> Self {
        self.table.profiles = Some(Box::new(profiles));
        self
    }

    /// Know, where devices are asked in passes, how much the program has computed so far: `computed` tells it in ns of
    /// processor time, or `None` once that cannot be told. Without, every program is taken for one that computes.
    pub fn with_computed(mut self, computed: impl Fn() -> Option<u64> + Send + 'static) -> Self {
        self.table.computed = Some(Box::new(computed));
        self
    }

    /// Bound the processor time of this process, from here on, by what following the program gains: `used` tells how much
    /// it has used, in ns.
    pub fn with_used(mut self, used: impl Fn() -> u64 + Send + 'static) -> Self {
        self.upkeep.count(Box::new(used));
        self
    }

    /// What was fetched of this source, by this backend, with [`fetch_head`](crate::fetch_head).
    pub fn with_head(mut self, head: Option<Head>) -> Self {
        self.head = head;
        self
    }

    /// What the session is doing.
    pub fn phase(&self) -> Phase {
        self.phase
    }

    /// Pages that may lie in memory unread, at present.
    pub fn target(&mut self) -> u64 {
        self.scheduler.budget().target()
    }

    /// The account so far.
    pub fn ledger(&self) -> Ledger {
        self.ledger
    }

    /// Look whether the plan's pages are in memory already, at a small sample of them; if so, the session is [`Phase::Hot`]
    /// and the program need not be observed. A plan that is still being made counts as cold, as does one whose head was
    /// missing.
    pub fn survey(&mut self) {
        if self.source.nature() != Nature::Literal || self.head.is_some() {
            // What is still to come cannot be looked at; what is on its way was missing.
            return;
        }
        let found = sample(self.source.as_mut(), &mut self.backend);
        self.source.rewind();
        if found.is_hot() {
            // Nobody will come to what is damaged of it.
            self.source.check();
            self.was_hot = true;
            self.phase = Phase::Hot;
        } else {
            self.upkeep.promised(found.waits().saturating_mul(WAIT));
        }
    }

    /// The program read this extent of a planned file.
    pub fn observe(&mut self, access: &Access) {
        if !access.kind.reads() {
            return;
        }
        let ours = self.account(access);
        if self.closed || self.phase == Phase::Hot {
            return;
        }
        let matched = self.scheduler.observe(access);
        self.judge(access, matched.known);
        // What waits for the kernel's read-ahead would not gain by ours.
        let mut taken = matched.consumed.iter();
        let streams = !matched.consumed.is_empty()
            && taken.all(|(_, one)| one.pattern == Pattern::Sequential);
        // Nobody knows whether a touch waited; one of a page that is new may have.
        let may_wait = self.ran_out && access.kind == Kind::Touch && !matched.known;
        let waited = if access.waited() { access.took } else { 0 };
        if streams {
            self.upkeep.pay_in(waited / STREAMED);
        }
        let gained = ours || may_wait || waited > 0 && !streams;
        self.weigh(gained, waited.max(WAIT));
    }

    /// The program read a file that is not in the plan.
    pub fn stray(&mut self, access: &Access) {
        if access.kind.reads() {
            self.judge(access, false);
            if self.ran_out {
                self.weigh(access.waited(), access.took);
            }
        }
    }

    /// What the program reads from now on is not observed, until [`Engine::resume`] or the end: of the pages it has not
    /// read by now nobody can tell whether it will.
    pub fn look_away(&mut self) {
        self.pages.watch(false);
    }

    /// Follow again a plan that was as good as hot: the program waits for its device. It is looked for in the
    /// plan by what it reads from `now` on.
    pub fn resume(&mut self, now: u64) {
        self.pages.watch(true);
        if self.phase == Phase::Hot && !self.closed {
            self.scheduler.restart();
            self.track = Track::seeking();
            self.upkeep.settle(now);
            self.phase = Phase::Lost;
        }
    }

    /// Whether it is early enough to tell of what the program reads in a while: nothing is left to fetch, as far as the
    /// source has told.
    pub fn rests(&self) -> bool {
        self.scheduler.rests()
    }

    /// Do what can be done at `now`. Returns whether anything is under way or was started, so that
    /// the caller knows to come back soon.
    pub fn step(&mut self, now: u64) -> bool {
        let is_busy = self.go_on(now);
        self.backend.let_go();
        is_busy
    }

    fn go_on(&mut self, now: u64) -> bool {
        self.collect(now);
        self.settle(now);
        if self.phase == Phase::Hot {
            self.hot_since.get_or_insert(now);
        }
        if self.closed || matches!(self.phase, Phase::Hot | Phase::GaveUp | Phase::Finished) {
            return self.scheduler.in_flight() > 0;
        }
        while let Some(asked) = self.scheduler.passed() {
            self.pass(&asked);
        }
        if now >= self.look_at {
            self.look_ahead(now);
        }
        let (backend, scheduler) = (&mut self.backend, &mut self.scheduler);
        self.beyond.look(now, backend, scheduler);
        for (file, pages) in self.scheduler.give_back() {
            self.ledger.enter(self.pages.give_back(file, &pages));
            self.backend.discard(file, pages);
        }
        if self.phase != Phase::Ahead {
            return self.scheduler.in_flight() > 0;
        }
        let most = match self.scheduler.queue().end() {
            0 => FIRST,
            _ => DISCLOSE,
        };
        let more = self.disclose(most);
        let mut site = Site {
            table: &mut self.table,
            backend: &mut self.backend,
        };
        let requests = self.scheduler.next(now, &mut site);
        let started = !requests.is_empty();
        for request in requests {
            // Infill of an earlier one may be what this one is for.
            self.want(request.id, request.file, &request.pages);
            self.backend.submit(request);
        }
        let busy = self.scheduler.in_flight() > 0 || self.scheduler.is_due();
        if self.exhausted && self.scheduler.is_out() {
            // Infill may stay unread.
            if self.pages.is_empty() || self.scheduler.queue().is_read_out() {
                // The program is still watched: if it goes on to wait for a device, it reads what no plan tells of
                // yet, and whoever records it must see all of that.
                self.ran_out = true;
            }
        }
        more || started || busy
    }

    /// Whether nothing is to be done until something is observed.
    pub fn is_quiet(&self) -> bool {
        self.phase == Phase::Hot && self.scheduler.in_flight() == 0
    }

    /// After how long, in ns, what following the program has cost so far beyond its gain is paid back by the time that
    /// passes: before, it is not worth being followed again.
    pub fn paid_back_in(&self) -> u64 {
        self.upkeep.paid_back_in()
    }

    /// Whether the program is where the plan is, and not past its end: what it reads next is foreseen.
    pub fn is_foreseen(&self) -> bool {
        self.phase == Phase::Ahead && !self.ran_out
    }

    /// The program has ended: fetch nothing more and look for nothing; what it read is still entered.
    pub fn close(&mut self) {
        if matches!(self.phase, Phase::Ahead | Phase::Lost) {
            self.closed = true;
        }
    }

    /// Close the account; nothing is to be asked of the engine after that.
    pub fn finish(&mut self, now: u64) -> Report {
        self.collect(now);
        self.ledger.enter(self.pages.rest());
        Report {
            ledger: self.ledger,
            phase: self.phase,
            reads: self.reads,
            foreseen: self.foreseen,
            missed_hot: self.missed_hot,
            found_again: self.found_again,
            was_hot: self.was_hot,
            devices: self.table.devices(),
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
                Event::Gone { file, why } => {
                    self.table.lost(file, why);
                    self.placed(file);
                }
                Event::Issued { id, file, pages } => {
                    let issued = self.pages.issue(file, &pages);
                    self.ledger.issued += issued.pages * PAGE;
                    self.ledger.evicted += issued.again * PAGE;
                    self.want(id, file, &pages);
                    let parts = self.parts.entry(id).or_default();
                    if parts.is_empty() {
                        self.upkeep.pay_in(self.scheduler.service_ns(id).max(WAIT));
                    }
                    parts.push((file, pages));
                }
                Event::Short { id, file, pages } => {
                    // What an earlier run read may be written by this one, and is in memory then.
                    let range = pages.clone();
                    if self.source.nature() == Nature::Told
                        && self.scheduler.past_end(id, file, range)
                    {
                        self.beyond.add(id, file, pages);
                    }
                }
                Event::Done { id, fetched, .. } => {
                    for (file, pages) in self.parts.remove(&id).unwrap_or_default() {
                        self.scheduler.arrived(id, file, &pages);
                        self.pages.arrive(file, &pages, now);
                    }
                    self.scheduler.completed(id, fetched, now);
                }
            }
        }
        self.events = events;
    }

    /// These pages of a request are wanted, but for its infill.
    fn want(&mut self, id: RequestId, file: FileId, pages: &Range<u64>) {
        let gaps = match &self.head {
            Some(head) if id == HEAD => head.gaps.as_slice(),
            _ => self.scheduler.infill(id),
        };
        let mut from = pages.start;
        for gap in gaps {
            self.pages.want(file, &(from..gap.start.min(pages.end)));
            from = from.max(gap.end);
        }
        self.pages.want(file, &(from..pages.end));
    }

    /// The program is past a request: what it has not read of that is not waited for any more. It may still be read.
    fn pass(&mut self, asked: &Asked) {
        let file = asked.request.file;
        self.beyond.forget(asked);
        let (pages, scheduler) = (&mut self.pages, &mut self.scheduler);
        for part in asked.wanted() {
            pages.pass(file, &part, |run| scheduler.pass(file, run));
        }
        // Where infill can be given back it is remembered for that since it arrived.
        if !scheduler.gives_back() {
            for gap in &asked.infill {
                pages.pass(file, gap, |_| ());
            }
        }
    }

    fn placed(&mut self, file: FileId) {
        let mut site = Site {
            table: &mut self.table,
            backend: &mut self.backend,
        };
        self.scheduler.placed(file, &mut site);
    }

    /// Take up to so many disclosures; whether there may be more at once.
    fn disclose(&mut self, most: usize) -> bool {
        if self.exhausted {
            return false;
        }
        self.disclosed.clear();
        let room = self.room(most);
        let mut outlook = self.source.disclose(room, &mut self.disclosed);
        if outlook == Outlook::Void {
            self.scheduler.restart();
            let room = self.room(most);
            outlook = self.source.disclose(room, &mut self.disclosed);
        }
        self.exhausted = outlook == Outlook::End;
        let queue = self.scheduler.queue();
        for one in &self.disclosed {
            queue.push(one);
        }
        self.disclosed.len() == most
    }

    /// How many disclosures may be taken, of so many.
    fn room(&mut self, most: usize) -> usize {
        let room = self.scheduler.queue().room().min(most);
        room.min(BACKLOG.saturating_sub(self.scheduler.waiting() as usize))
    }

    /// Be quiet if foreread has used more than it has gained.
    fn settle(&mut self, now: u64) {
        self.upkeep.settle(now);
        let follows = matches!(self.phase, Phase::Ahead | Phase::Lost) && !self.closed;
        if follows
            && !self.ran_out
            && self.source.nature() != Nature::Told
            && self.upkeep.is_overdrawn()
        {
            self.phase = Phase::Hot;
        }
    }

    /// A read was observed; if it `gained` or could have, by so many ns.
    fn weigh(&mut self, gained: bool, ns: u64) {
        self.upkeep.observed();
        if gained {
            self.upkeep.pay_in(ns);
        }
        if self.ran_out && self.worth.weigh(gained) {
            self.phase = Phase::Finished;
        }
    }

    /// Enter a read into the ledger; whether any of it was fetched for it.
    fn account(&mut self, access: &Access) -> bool {
        let (file, scheduler) = (access.file, &mut self.scheduler);
        let read = self
            .pages
            .read(file, &access.extent.pages(), access.start, |run| {
                scheduler.pass(file, run);
            });
        let (there, under_way) = (read.there * PAGE, read.under_way * PAGE);
        let waited = access.waited();
        if access.kind == Kind::Touch {
            // A sample, or a position the program tells, says what was read, not whether that waited.
            let gone = self.look_up(file, &access.extent.pages(), read.there) * PAGE;
            self.ledger.useful += there - gone;
            self.ledger.evicted += gone;
            self.ledger.late += under_way;
        } else if !waited {
            self.ledger.useful += there + under_way;
            self.scheduler.budget().kept(read.there + read.under_way);
        } else {
            let pages = access.extent.pages();
            let ours = read.there + read.under_way;
            self.ledger.late += under_way;
            if read.there == pages.end - pages.start && self.under_pressure(access.file, &pages) {
                // All of it had arrived, and yet the program waited: it was gone again.
                self.ledger.evicted += there;
                self.scheduler.budget().lost(read.there);
            } else if ours == pages.end - pages.start {
                self.ledger.useful += there;
            } else {
                self.ledger.useful += there;
                let missed = (pages.end - pages.start - ours) * PAGE;
                self.ledger.missed += missed;
                if self.hot_since.is_some_and(|since| access.start >= since) {
                    self.missed_hot += missed;
                }
            }
        }
        there + under_way > 0
    }

    /// Of so many pages that were there, those that are gone again, where that is looked up.
    fn look_up(&mut self, file: FileId, pages: &Range<u64>, there: u64) -> u64 {
        if there == 0 {
            return 0;
        }
        if self.alert == 0 && self.passed_up + 1 < LOOK_UP {
            self.passed_up += 1;
            return 0;
        }
        self.passed_up = 0;
        let backend = &mut self.backend;
        let gone = backend.evicted(file, pages.clone()).or_else(|| {
            let resident = backend.resident(file, pages.clone())?;
            Some((pages.end - pages.start).saturating_sub(resident))
        });
        let gone = gone.unwrap_or(0).min(there);
        self.alert = if gone > 0 {
            ALERT
        } else {
            self.alert.saturating_sub(1)
        };
        self.scheduler.budget().lost(gone);
        self.scheduler.budget().kept(there - gone);
        gone
    }

    /// Whether pages around these had to make room lately: without that, a read that took long was
    /// held up by something else than the device.
    fn under_pressure(&mut self, file: FileId, pages: &Range<u64>) -> bool {
        let around = pages.start.saturating_sub(AROUND)..pages.end + AROUND;
        self.backend
            .evicted(file, around)
            .is_none_or(|evicted| evicted > 0)
    }

    /// See whether the program still follows the plan.
    fn judge(&mut self, access: &Access, foreseen: bool) {
        if self.phase == Phase::Hot || self.closed {
            // Nothing was put into the queue to match against, or is put there any more.
            return;
        }
        self.reads += 1;
        self.foreseen += u64::from(foreseen);
        if self.source.nature() != Nature::Literal
            || self.ran_out
            || !matches!(self.phase, Phase::Ahead | Phase::Lost)
        {
            return;
        }
        match self.track.read(access, foreseen) {
            Course::OnPlan => {}
            Course::Lost => self.phase = Phase::Lost,
            Course::GiveUp => self.phase = Phase::GaveUp,
            Course::Search => {
                self.scheduler.restart();
                let found = self.source.resync(self.track.recent());
                self.track.searched(found);
                self.exhausted = false;
                self.found_again += u64::from(found);
                self.phase = if found { Phase::Ahead } else { Phase::Lost };
                if found {
                    self.upkeep.invested();
                    // Reads that were handed over with this one come before the next step.
                    self.disclose(DISCLOSE);
                }
            }
        }
    }
}
