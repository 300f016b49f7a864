//! A program that is served: its whole record is fetched at full depth, from the moment the record is found.
//!
//! A record of another command is on trial, and so is the record of a run that differed from the run before: little is fetched ahead until
//! the program has read most of a window of the record. Whether a plan pays is decided once, before the program starts ([`not_worth`]). If
//! it does not, the program runs unobserved.
//!
//! Data flow: record → [`Plan`] → [`Served`], which receives the program's reads → the account.

use std::collections::{BTreeMap, HashSet};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use foreread_backend::{Change, Collective, PageCache, RankCache};
use foreread_core::cold::Look;
use foreread_core::{Account, Cache, Difference, Files, Session, SoFar};
use foreread_plan::format::{Outline, ReadError};
use foreread_plan::{
    Access, FileId, FileMeta, PAGE, PathMap, Sequence, Summary, ThreadId, ThreadMeta,
};
use foreread_ring::Advice;
use foreread_store::Found;
use foreread_sys::device::Device;
use foreread_sys::mounts::Mount;
use foreread_sys::{memory, processor};
use foreread_words::shown;
use rustc_hash::FxHashSet;

use super::files::{Recorded, Trouble};
use super::follow::Followed;
use super::recording::{Recording, advice};
use super::report::{FileFates, Phase, REPLAY, Report, Strand};
use super::user_space::UserSpace;
use super::watch::Sink;

impl Files for Recorded {
    fn file(&self, file: FileId) -> Option<&FileMeta> {
        self.get(file)
    }
}

/// The files of a rank's record, and its part of the collective cache.
struct OfRank {
    recorded: Arc<Recorded>,
    part: RankCache,
}

impl Files for OfRank {
    fn file(&self, file: FileId) -> Option<&FileMeta> {
        self.recorded.get(file)
    }

    fn cache(&self) -> Option<&dyn Cache> {
        Some(self)
    }
}

impl Cache for OfRank {
    fn takes(&self, file: FileId) -> bool {
        self.part.takes(file)
    }

    fn bring(&self, file: FileId, pages: Range<u64>) {
        self.part.bring(file, pages);
    }

    fn is_full(&self) -> bool {
        self.part.is_full()
    }

    fn stop(&self) {
        self.part.stop();
    }

    fn brought(&self) -> Vec<(FileId, Range<u64>)> {
        self.part.brought()
    }
}

/// The foot of this command's own record, if the run went to its end and no event was lost.
fn whole<'a>(found: &Found, record: &'a Outline) -> Option<&'a Summary> {
    let summary = record.summary()?;
    let was_killed = summary.exit_status.is_some_and(|status| status >= 128);
    (found.exact && !was_killed && summary.lost == 0).then_some(summary)
}

/// True if the record's files in user space are left alone. A rank has the collective cache for them.
fn spares(record: &Outline, is_rank: bool) -> bool {
    let summary = record.summary();
    !is_rank && !summary.is_some_and(Summary::waited_for_idle_servers)
}

/// The files of a record's sample, but for those that are left alone.
pub(super) fn fetched(record: &Outline, is_rank: bool) -> Arc<BTreeMap<FileId, FileMeta>> {
    let mut files = record.files();
    let mut user_space = UserSpace::default();
    if spares(record, is_rank) && files.values().any(|meta| user_space.has(meta.dev)) {
        Arc::make_mut(&mut files).retain(|_, meta| !user_space.has(meta.dev));
    }
    files
}

/// The check of a plan that does not pay because so little is missing from memory; `None` if it pays, or the record does not say.
/// Only places in these files are checked.
pub(super) fn not_worth(
    found: &Found,
    record: &Outline,
    files: &BTreeMap<FileId, FileMeta>,
) -> Option<Look> {
    let summary = whole(found, record)?;
    let look = Look::at(record.sample()?, files);
    (!look.pays(summary, processor::count())).then_some(look)
}

/// A record by which a program can be served.
pub(super) struct Plan {
    pub(super) recorded: Arc<Recorded>,
    trouble: Trouble,
    /// True if the record is another command's, or of a run that differed from the run before.
    on_trial: bool,
    /// True if the record has only a part of the command's reads.
    is_partial: bool,
}

impl Plan {
    /// The plan of a record, its files where they lie by this map.
    pub(super) fn of(found: &Found, record: Outline, is_rank: bool, map: &PathMap) -> Self {
        let trouble = Trouble::default();
        let may_be_left = record.summary().is_some_and(|foot| foot.left_plan);
        let is_partial = record.summary().is_some_and(|foot| foot.partial);
        let spares = spares(&record, is_rank);
        let recorded = Recorded::of(record, found.wanted.clone(), &trouble).sparing(spares);
        let recorded = recorded.mapped(map);
        Self {
            recorded: Arc::new(recorded),
            trouble,
            // The same command's elsewhere is its own.
            on_trial: found.wanted.is_some() || may_be_left,
            is_partial,
        }
    }

    /// Advice to the kernel on the planned files.
    pub(super) fn advice(&self) -> impl Iterator<Item = (&Path, Advice)> {
        advice(&self.recorded)
    }

    /// Starts fetching, for a rank into its part of the collective cache as well.
    ///
    /// # Errors
    /// When no thread can be started.
    pub(super) fn serve(self, collective: Option<Collective>) -> std::io::Result<Served> {
        let recorded = Arc::clone(&self.recorded);
        let files: Arc<dyn Files> = match &collective {
            None => Arc::clone(&recorded) as _,
            Some(collective) => Arc::new(OfRank {
                part: RankCache::new(PageCache::of(Arc::clone(&recorded) as _), collective),
                recorded: Arc::clone(&recorded),
            }),
        };
        let recording = Recording::new(&recorded, &self.trouble, collective.clone());
        let session = Session::start(recording, files, memory::free() / PAGE, self.on_trial)?;
        let session = session.of_part(self.is_partial);
        Ok(Served {
            session,
            collective,
            recorded: self.recorded,
            trouble: self.trouble,
            overtaken: FxHashSet::default(),
            written: FxHashSet::default(),
            rereads: false,
        })
    }

    /// The plan of a program that is left alone.
    pub(super) fn left_alone(self, look: Look) -> LeftAlone {
        LeftAlone { plan: self, look }
    }
}

/// A plan that is in memory.
pub(super) struct LeftAlone {
    plan: Plan,
    look: Look,
}

impl LeftAlone {
    /// Checks the whole record for damage. Its content is not kept.
    pub(super) fn check(&self) {
        if let Some(outline) = self.plan.recorded.outline()
            && let Err(why @ ReadError::Damaged { .. }) = outline.check()
        {
            self.plan.trouble.get_or_init(|| why.to_string());
        }
    }

    /// Its report.
    pub(super) fn finish(self) -> Followed {
        let account = Account {
            differences: self.look.differences,
            ..Account::default()
        };
        Followed {
            report: Some(report(account, Phase::Hot)),
            files: self.plan.recorded,
            overtaken: HashSet::new(),
            trouble: self.plan.trouble.get().cloned(),
            unmeasured: None,
            left: None,
            fates: Vec::new(),
        }
    }
}

/// A program being served.
pub(super) struct Served {
    session: Session,
    collective: Option<Collective>,
    recorded: Arc<Recorded>,
    trouble: Trouble,
    /// The record's files that were seen to be other than it has them.
    overtaken: FxHashSet<FileId>,
    /// Files that this run has written itself, or that are left alone: their reads do not count.
    written: FxHashSet<FileId>,
    /// True if the program has waited for a read of one of these.
    rereads: bool,
}

impl Served {
    /// True if the program no longer follows the record.
    pub(super) fn has_left(&self) -> bool {
        self.session.has_left()
    }

    /// True if the program has waited for a read that the record does not have.
    pub(super) fn has_strayed(&self) -> bool {
        self.session.has_strayed() || self.rereads && self.recorded.rereads()
    }

    /// The record, if the recorded run waited for what it had written itself.
    pub(super) fn rewritten(&self) -> Option<&Arc<Recorded>> {
        Some(&self.recorded).filter(|recorded| recorded.rereads())
    }

    /// Bytes of the plan requested so far, or found in memory, and of these, bytes that the program has read.
    pub(super) fn progress(&self) -> (u64, u64) {
        let (taken, passed) = self.session.progress();
        (taken * PAGE, passed * PAGE)
    }

    /// The ledger so far.
    pub(super) fn so_far(&self) -> SoFar {
        self.session.so_far()
    }

    /// True if the record has the file.
    pub(super) fn has(&self, file: FileId) -> bool {
        self.recorded.follows(file)
    }

    /// True if nothing is left to fetch or to observe.
    pub(super) fn is_over(&self) -> bool {
        self.session.is_over() && !self.recorded.rereads()
    }

    /// True if the record is damaged, as far as is known.
    pub(super) fn is_damaged(&self) -> bool {
        self.trouble.get().is_some()
    }

    /// The program is not observed from now on, or was not all the time.
    pub(super) fn look_away(&mut self) {
        self.session.look_away();
    }

    /// Ends fetching. `device_bytes`: bytes that the program itself read from devices.
    pub(super) fn finish(self, device_bytes: Option<u64>) -> Followed {
        let is_over = self.session.is_over();
        let mut account = self.session.finish();
        if account.was_full {
            // A page that it had to read itself was gone again; one that was on its way was read for it.
            let own = device_bytes
                .unwrap_or(0)
                .saturating_sub(account.ledger.missed);
            account.ledger.evicted = own.min(account.ledger.late);
            account.ledger.late -= account.ledger.evicted;
        }
        let phase = match (account.has_left, is_over) {
            (true, _) => Phase::GaveUp,
            (false, true) => Phase::Finished,
            (false, false) => Phase::Ahead,
        };
        let differ = account.differences.iter();
        let differ = differ.filter(|(_, how)| !matches!(how, Difference::Gone(_)));
        let overtaken = differ.map(|(file, _)| file).chain(&self.overtaken);
        let overtaken = overtaken.filter_map(|file| self.recorded.get(*file));
        let overtaken = overtaken.map(|meta| meta.path.clone()).collect();
        let fates = std::mem::take(&mut account.fates).into_iter();
        let fates = fates.filter_map(|of| {
            let path = &self.recorded.get(of.file)?.path;
            Some(FileFates {
                path: shown(&path.to_string_lossy()).into_owned(),
                bytes: of.bytes,
                runs: of.runs,
            })
        });
        Followed {
            left: account.left,
            fates: fates.collect(),
            overtaken,
            report: Some(report(account, phase)),
            files: self.recorded,
            trouble: self.trouble.get().cloned(),
            unmeasured: None,
        }
    }
}

impl Sink for Served {
    fn file(&mut self, id: FileId, meta: &FileMeta) {
        self.named(id, meta);
        if meta.written || self.recorded.is_left_alone(id) {
            self.written.insert(id);
        }
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

    fn grown(&mut self, _: FileId, _: &FileMeta) {}

    fn doubted(&mut self, id: FileId) {
        self.session.doubt(id);
    }

    fn trusts(&self, id: FileId) -> bool {
        self.session.plans(id)
    }

    fn thread(&mut self, _: ThreadId, _: &ThreadMeta) {}

    fn accesses(&mut self, sequence: Sequence) {
        let Access { file, kind, .. } = sequence.first;
        if kind.asks()
            && let Some(collective) = &self.collective
        {
            collective.ask(file);
        }
        if kind.names() {
            if sequence.first.waited() {
                self.session.named(file);
            }
        } else if kind.reads() {
            let waited = sequence.first.waited();
            if self.written.contains(&file) {
                self.rereads |= waited;
                return;
            }
            let pages = sequence.extent().pages();
            self.session.read(file, pages, waited, sequence.count());
        }
    }
}

/// An account in the form of the summary.
fn report(account: Account, phase: Phase) -> Report {
    let strand = Strand {
        name: REPLAY,
        phase,
        ledger: account.ledger,
        names: account.names,
        reads: account.reads,
        foreseen: account.foreseen,
    };
    let (mut changed, mut gone) = (Vec::new(), Vec::new());
    let mut copied = HashSet::new();
    for (file, how) in account.differences {
        match how {
            Difference::Copied => {
                copied.insert(file);
            }
            Difference::Replaced => changed.push((file, Change::Replaced)),
            Difference::Resized(size) => changed.push((file, Change::Resized(size))),
            Difference::Modified => changed.push((file, Change::Modified)),
            Difference::Gone(why) => gone.push((file, why)),
        }
    }
    Report {
        ledger: account.ledger,
        names: account.names,
        phase,
        reads: account.reads,
        foreseen: account.foreseen,
        // The whole plan was in memory.
        was_hot: account.ledger.issued == 0 && account.names.fetched == 0,
        changed,
        gone,
        copied,
        devices: named(&account.devices),
        strands: vec![strand],
    }
}

/// The names of devices.
fn named(devices: &[u64]) -> Vec<String> {
    if devices.is_empty() {
        return Vec::new();
    }
    let mounts = Mount::all().unwrap_or_default();
    let names = devices.iter().map(|&dev| Device::among(dev, &mounts).name);
    names.collect()
}
