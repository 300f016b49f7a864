//! Keeping ahead of a run by what an earlier one read.
//!
//! Data flow: record → [`Opened`] → source `replay` → [`Session`]; the watcher's accesses, their files
//! renumbered as in the record → the session, which so knows where the program is.
//!
//! Invariant: the program waits for the outline of its record, and for what it will read first to be asked for. All that takes its
//! time is done by the session's thread, while the program is started and loaded, and what takes the longer the more the record
//! holds is not done at all unless the sample in the outline tells that there is something to fetch.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Instant;

use anyhow::Context;
use foreread_backend::{Backend, Collective, PageCache, SharedCache};
use foreread_engine::{Config, Engine, IDLE_READS, Phase, Report, Session, fetch_head};
use foreread_plan::format::{Outline, ReadError, Reader, Sample};
use foreread_plan::{
    self as plan, Access, Extent, FileId, FileMeta, Head, Kind, PAGE, Seen, Sequence, Summary,
    ThreadId, ThreadMeta,
};
use foreread_profiles::Profiles;
use foreread_ring::Advice;
use foreread_sources::signature::{Learnt, Roles, Signatures};
use foreread_sources::{Replay, Source, Trace};
use foreread_store::Found;
use foreread_sys::device::Device;
use foreread_sys::memory;

use super::files::{Recorded, Trouble};
use super::lessons::learnt;
use super::user_space::UserSpace;
use super::watch::Sink;
use crate::profile::{chosen, computes, turns};

/// What reports call the strand that follows a record.
pub(super) const REPLAY: &str = "replay";

/// Pages of a touch that are disclosed at a time. A touch is disclosed page by page, and one of a record written to mislead
/// may be of all pages there are.
const TOUCHED: u64 = 1024;

/// What each device is taken for, in words, by its name.
type Devices = Arc<Mutex<BTreeMap<String, String>>>;

/// A record as a trace: read as far as it is sound.
pub(super) struct Recording {
    /// Once it is read.
    reader: Option<Box<Reader>>,
    accesses: Option<u64>,
    /// What is left of a long touch.
    touched: Option<Access>,
    trouble: Trouble,
    files: Arc<Recorded>,
    collective: Option<Collective>,
}

impl Recording {
    /// The record with these files and so many accesses.
    pub(super) fn new(files: &Arc<Recorded>, accesses: Option<u64>, trouble: &Trouble) -> Self {
        Self {
            reader: None,
            accesses,
            touched: None,
            trouble: Arc::clone(trouble),
            files: Arc::clone(files),
            collective: None,
        }
    }

    fn reader(&mut self) -> Option<&mut Reader> {
        if self.reader.is_none() {
            self.reader = self.files.reader();
        }
        self.reader.as_deref_mut()
    }

    /// The next access to a file that is followed.
    fn advance(&mut self) -> Option<Access> {
        loop {
            match self.reader()?.next_access()? {
                Ok(access) if self.files.skips(access.file) => {}
                Ok(access) => return Some(access),
                Err(why) => {
                    self.trouble.get_or_init(|| why.to_string());
                    return None;
                }
            }
        }
    }
}

impl Trace for Recording {
    fn next(&mut self) -> Option<Access> {
        let mut access = match self.touched.take() {
            Some(rest) => rest,
            None => self.advance()?,
        };
        if access.kind == Kind::Touch {
            let (first, rest) = split(access.extent);
            access.extent = first;
            self.touched = rest.map(|extent| Access { extent, ..access });
        }
        access.file = self.files.first_name(access.file);
        if access.kind.asks()
            && let Some(collective) = &self.collective
        {
            collective.ask(access.file);
        }
        Some(access)
    }

    fn rewind(&mut self) {
        self.touched = None;
        if let Some(reader) = &mut self.reader {
            reader.rewind();
        }
    }

    fn skip_to(&mut self, share: f64) {
        if let Some(reader) = self.reader() {
            reader.skip_to(share);
        }
    }

    fn accesses(&self) -> Option<u64> {
        self.accesses
    }

    fn sampled(&self) -> Option<&Sample> {
        self.files.outline()?.sample()
    }

    fn check(&mut self) {
        let checked = match self.files.outline() {
            Some(outline) if !self.files.is_whole() => outline.check(),
            _ => self.reader().map_or(Ok(()), Reader::check),
        };
        // A record that cannot be read any more is the user's business.
        if let Err(why @ ReadError::Damaged { .. }) = checked {
            self.trouble.get_or_init(|| why.to_string());
        }
    }
}

/// The sources that learn while the program runs, and what reports call them.
fn guesses(learnt: Vec<Learnt>) -> Vec<(&'static str, Box<dyn Source>)> {
    let signatures = Signatures::new().with_learnt(learnt);
    vec![("signatures", Box::new(signatures))]
}

/// What fetches these files, for a rank with a part of the collective cache or not.
fn backend(recorded: &Arc<Recorded>, collective: Option<&Collective>) -> Box<dyn Backend> {
    let recorded = Arc::clone(recorded);
    let page_cache = PageCache::of(recorded);
    match collective {
        Some(collective) => Box::new(SharedCache::new(page_cache, collective)),
        None => Box::new(page_cache),
    }
}

/// The first of an extent's pages, as many as are disclosed at a time, and the rest.
fn split(extent: Extent) -> (Extent, Option<Extent>) {
    let first = extent.pages().start.saturating_add(TOUCHED);
    let at = first.saturating_mul(PAGE);
    if at >= extent.end() {
        return (extent, None);
    }
    (
        Extent::new(extent.offset, at - extent.offset),
        Some(Extent::new(at, extent.end() - at)),
    )
}

/// What a session goes by. Where there is a record, its plan is begun: what the program will read first is on its way.
pub(super) struct Opened {
    /// The plan that the record is.
    plan: Option<Box<dyn Source>>,
    /// Whether that is another command's.
    on_trial: bool,
    /// Sources that learn while the program runs, and what reports call them.
    guesses: Vec<(&'static str, Box<dyn Source>)>,
    roles: Roles,
    backend: Box<dyn Backend>,
    collective: Option<Collective>,
    head: Option<Head>,
    /// The files of the record.
    pub(super) recorded: Arc<Recorded>,
    trouble: Trouble,
    /// The foot of the record, if it is whole.
    pub(super) summary: Option<Summary>,
}

impl Opened {
    /// A session without a record: all that is known of the program is what it will be seen to do.
    pub(super) fn nothing(roles: Roles, collective: Option<Collective>) -> Self {
        let recorded = Arc::<Recorded>::default();
        Self {
            plan: None,
            on_trial: false,
            guesses: guesses(Vec::new()),
            roles,
            backend: backend(&recorded, collective.as_ref()),
            collective,
            head: None,
            recorded,
            trouble: Trouble::default(),
            summary: None,
        }
    }

    /// A record to be followed, as it was `found`, but for those of its files that are foreign and those that the recorded run
    /// wrote itself.
    pub(super) fn new(
        record: Outline,
        found: &Found,
        roles: Roles,
        collective: Option<Collective>,
    ) -> Self {
        let trouble = Trouble::default();
        let summary = record.summary().cloned();
        let learnt = learnt(record.signatures());
        let recorded = Arc::new(Recorded::of(record, found.wanted.clone(), &trouble));
        let accesses = summary.as_ref().map(|summary| summary.accesses);
        let recording = Recording {
            collective: collective.clone(),
            ..Recording::new(&recorded, accesses, &trouble)
        };
        let mut source = Box::new(Replay::new(recording, HashSet::new()));
        let mut backend = backend(&recorded, collective.as_ref());
        // The program waits for no more than the sample.
        let is_sampled = recorded.outline().is_some_and(|one| one.sample().is_some());
        let head = is_sampled.then(|| fetch_head(source.as_mut(), &mut backend));
        Self {
            plan: Some(source),
            on_trial: !found.exact,
            guesses: guesses(learnt),
            roles,
            backend,
            collective,
            head: head.flatten(),
            recorded,
            trouble,
            summary,
        }
    }

    /// What the kernel is best told of the planned files.
    pub(super) fn advice(&self) -> impl Iterator<Item = (&Path, Advice)> {
        advice(&self.recorded)
    }
}

/// What the kernel is best told of the files of a record.
pub(super) fn advice(recorded: &Recorded) -> impl Iterator<Item = (&Path, Advice)> {
    let mut devices = HashMap::new();
    let mut has_room = move |dev| {
        *devices.entry(dev).or_insert_with(|| {
            memory::has_room_for_streams(memory::budget(), Device::of(dev).read_ahead)
        })
    };
    let read = recorded.at_hand();
    let read = read.filter(|meta| !meta.written);
    read.filter_map(move |meta| {
        let advice = match meta.advice {
            plan::Advice::Random => Advice::Random,
            plan::Advice::Sequential if has_room(meta.dev) => Advice::Sequential,
            _ => return None,
        };
        Some((meta.path.as_path(), advice))
    })
}

/// What came of following.
pub(super) struct Followed {
    /// The session's account; `None` if the engine died.
    pub(super) report: Option<Report>,
    /// The record's files.
    pub(super) files: Arc<Recorded>,
    /// The paths of those that are not as the record has them.
    pub(super) overtaken: HashSet<PathBuf>,
    /// What is wrong with the record, as far as is known.
    pub(super) trouble: Option<String>,
    /// Why no device goes by what was measured of it.
    pub(super) unmeasured: Option<String>,
}

impl Followed {
    /// This, and what was guessed beside it of files that the record does not have.
    pub(super) fn and(mut self, guessed: Self) -> Self {
        if let (Some(report), Some(other)) = (&mut self.report, guessed.report) {
            // Both were shown these reads.
            let missed = report.ledger.missed;
            report.ledger = [report.ledger, other.ledger].into_iter().sum();
            report.ledger.missed = missed;
            report.names = [report.names, other.names].into_iter().sum();
            report.foreseen += other.foreseen;
            report.was_hot &= other.ledger.issued == 0;
            report.strands.extend(other.strands);
            report.devices.extend(other.devices);
            report.devices.sort_unstable();
            report.devices.dedup();
        }
        self.unmeasured = self.unmeasured.or(guessed.unmeasured);
        self
    }
}

/// A session, and what is known of the record that it follows.
pub(super) struct Follower {
    session: Session,
    /// Whether there is a plan: then all reads are held against it.
    has_plan: bool,
    /// Reads that may still be shown to those who guess, before the next one waits.
    patience: u32,
    /// What files are for, by their names.
    roles: Roles,
    collective: Option<Collective>,
    /// Files that have had their turn.
    met: HashSet<FileId>,
    /// Files of which nothing is fetched without a plan: their file systems are in user space.
    spared: HashSet<FileId>,
    user_space: UserSpace,
    /// The record's files that were seen to be other than it has them.
    overtaken: HashSet<FileId>,
    recorded: Arc<Recorded>,
    trouble: Trouble,
    unmeasured: Trouble,
    devices: Devices,
}

impl Follower {
    /// Follow a record; observations' times count from `start`.
    pub(super) fn start(opened: Opened, start: Instant) -> anyhow::Result<Self> {
        let has_plan = opened.plan.is_some();
        let passes = opened.summary.as_ref().is_some_and(computes);
        let turns = opened.summary.as_ref().and_then(turns);
        let (devices, unmeasured) = (Devices::default(), Trouble::default());
        let (met, why_not) = (Arc::clone(&devices), Arc::clone(&unmeasured));
        let make = move || {
            let profiles = Profiles::load().unwrap_or_else(|why| {
                why_not.get_or_init(|| format!("{:#}", anyhow::Error::from(why)));
                Profiles::default()
            });
            let config = Config {
                budget_pages: memory::budget() / PAGE,
                passes,
                ..Config::default()
            };
            let mut engine = Engine::new(opened.backend, config);
            if let Some(plan) = opened.plan {
                engine = engine.with_strand(REPLAY, plan).with_head(opened.head);
                if opened.on_trial {
                    engine = engine.on_trial();
                }
            }
            for (name, source) in opened.guesses {
                engine = engine.with_strand(name, source);
            }
            engine.with_profiles(move |dev, device| {
                let (profile, said) = chosen(device, profiles.of(dev), turns);
                if let Ok(mut met) = met.lock() {
                    met.insert(device.name.clone(), said);
                }
                profile
            })
        };
        let session = Session::start(make, start).context("starting the engine's thread")?;
        Ok(Self {
            session,
            has_plan,
            patience: 0,
            roles: opened.roles,
            collective: opened.collective,
            met: HashSet::new(),
            spared: HashSet::new(),
            user_space: UserSpace::default(),
            overtaken: HashSet::new(),
            recorded: opened.recorded,
            trouble: opened.trouble,
            unmeasured,
            devices,
        })
    }

    /// Have what was observed looked at, and hear what the session is doing.
    pub(super) fn flush(&mut self) -> Phase {
        if self.session.backlog() > 0 {
            self.session.wake();
        }
        self.session.phase()
    }

    /// What the session is doing, once it has looked at its plan; for that, nobody need look at what the program does.
    pub(super) fn decided(&self) -> Option<Phase> {
        self.session.has_begun().then(|| self.session.phase())
    }

    /// Whether the session has nothing to do, whatever the program reads, until a read waits.
    pub(super) fn rests(&self) -> bool {
        self.session.phase() == Phase::Hot
    }

    /// Whether what the program waits for may be on its way, or about to be asked for.
    pub(super) fn is_busy(&self) -> bool {
        self.session.is_busy()
    }

    /// Whether the program has left the record for good, whatever is guessed of it.
    pub(super) fn gave_up(&self) -> bool {
        self.session.gave_up()
    }

    /// Whether what the program reads next is foreseen: then nobody else need read ahead for it.
    pub(super) fn is_foreseen(&self) -> bool {
        self.session.is_foreseen()
    }

    /// Follow again, after [`Phase::Hot`]: the program has begun to wait for its device.
    pub(super) fn resume(&mut self) {
        self.session.resume();
    }

    /// What the program reads is not observed from now on, until [`Follower::resume`] or the end, or was not all the time.
    pub(super) fn look_away(&self) {
        self.session.look_away();
    }

    /// Whether anything is wrong with the record, as far as is known.
    pub(super) fn is_damaged(&self) -> bool {
        self.trouble.get().is_some()
    }

    /// End the session.
    pub(super) fn finish(self) -> Followed {
        // This process is about to end, and the session's threads with it.
        let report = self.session.account();
        let told = report.iter().flat_map(|report| &report.changed);
        let overtaken = self.overtaken.iter().chain(told.map(|(file, _)| file));
        let overtaken = overtaken.filter_map(|file| self.recorded.get(*file));
        let overtaken = overtaken.map(|meta| meta.path.clone()).collect();
        Followed {
            report,
            files: self.recorded,
            overtaken,
            trouble: self.trouble.get().cloned(),
            unmeasured: self.unmeasured.get().cloned(),
        }
    }

    /// What each device met is taken for, in words, by its name.
    pub(super) fn devices(&self) -> BTreeMap<String, String> {
        self.devices
            .lock()
            .map(|met| met.clone())
            .unwrap_or_default()
    }
}

impl Follower {
    /// Tell the session how a file is by now.
    fn tell(&self, file: FileId, meta: &FileMeta) {
        if !self.recorded.follows(file) {
            // The backend knows those of the plan.
            self.session.add_file(file, meta.clone());
        }
        self.tell_size(file, meta);
    }

    /// Tell the session how long a file is by now.
    fn tell_size(&self, file: FileId, meta: &FileMeta) {
        self.session.see(Seen::File {
            file,
            size: meta.size,
            written: meta.written,
        });
    }

    /// Whether the session has any use for a read. Without a plan, none of a program whose reads do not wait, once all that was fetched
    /// is accounted for.
    fn wants(&mut self, sequence: &Sequence) -> bool {
        if self.has_plan {
            return true;
        }
        if sequence.first.waited() {
            self.patience = IDLE_READS;
            if self.rests() {
                self.session.resume();
            }
        } else if self.patience > 0 && !self.session.is_busy() && self.session.ledger().is_closed()
        {
            self.patience -= 1;
        }
        self.patience > 0
    }
}

impl Sink for Follower {
    fn file(&mut self, id: FileId, meta: &FileMeta) {
        self.named(id, meta);
        self.opened(id, meta);
    }

    fn named(&mut self, id: FileId, meta: &FileMeta) {
        if !meta.written
            && self.recorded.follows(id)
            && let Some(recorded) = self.recorded.get(id)
            && !meta.same_state(recorded)
        {
            self.overtaken.insert(id);
        }
    }

    fn opened(&mut self, id: FileId, meta: &FileMeta) {
        let is_guessed = !self.has_plan && self.collective.is_none();
        if is_guessed && self.user_space.has(meta.dev) {
            self.spared.insert(id);
        }
        self.tell(id, meta);
        if !meta.directory && self.met.insert(id) {
            self.session.see(Seen::Role {
                file: id,
                role: self.roles.of(&meta.path),
                turn: self.roles.turn(&meta.path),
            });
        }
    }

    fn grown(&mut self, id: FileId, meta: &FileMeta) {
        if meta.size == 0 {
            // What comes now lies elsewhere.
            self.tell(id, meta);
        } else {
            self.tell_size(id, meta);
        }
    }

    fn doubted(&mut self, id: FileId) {
        self.session.doubt(id);
    }

    fn thread(&mut self, _: ThreadId, _: &ThreadMeta) {}

    fn accesses(&mut self, sequence: Sequence) {
        let Access {
            file, thread, kind, ..
        } = sequence.first;
        if kind.asks()
            && let Some(collective) = &self.collective
        {
            collective.ask(file);
        }
        if self.spared.contains(&file) {
            return;
        }
        if kind.reads() && self.wants(&sequence) {
            self.session.see(Seen::Read(sequence));
        } else if kind.names() && self.has_plan {
            self.session.see(Seen::Named { file, kind, thread });
        }
    }
}

#[cfg(test)]
mod tests;
