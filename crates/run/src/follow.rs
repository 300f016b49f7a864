//! Keeping ahead of a run by patterns, of its own reads and of an earlier run's.
//!
//! Data flow: the watcher's accesses → [`Follower`] → [`Session`] with the source of signatures → [`Followed`].

use std::collections::{BTreeMap, HashSet};
use std::iter;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use anyhow::Context;
use foreread_backend::{Backend, Collective, PageCache, SharedCache};
use foreread_core::{Left, SoFar, Trace as _};
use foreread_engine::{Config, Engine, IDLE_READS, Session};
use foreread_plan::{Access, FileId, FileMeta, PAGE, Seen, Sequence, ThreadId, ThreadMeta};
use foreread_profiles::Profiles;
use foreread_sources::Rewritten;
use foreread_sources::signature::{Learnt, Roles, Signatures};
use foreread_sys::memory;

use super::files::{Recorded, Trouble};
use super::recording::Recording;
use super::report::{FileFates, REWRITTEN, Report};
use super::user_space::UserSpace;
use super::watch::Sink;
use crate::profile::chosen;

/// Descriptions of each device's profile, by the device's name.
type Devices = Arc<Mutex<BTreeMap<String, String>>>;

/// Guesses about a program's reads, prepared before its start.
pub(super) struct Guesses {
    /// The roles of its files, by its command line.
    pub(super) roles: Roles,
    /// Patterns of an earlier run.
    pub(super) learnt: Vec<Learnt>,
}

/// Result of a session.
pub(super) struct Followed {
    /// The session's account; `None` if the engine died.
    pub(super) report: Option<Report>,
    /// The record's files.
    pub(super) files: Arc<Recorded>,
    /// The paths of those that are not as the record has them.
    pub(super) overtaken: HashSet<PathBuf>,
    /// Damage of the record, as far as known.
    pub(super) trouble: Option<String>,
    /// The reason why no device has a measured profile.
    pub(super) unmeasured: Option<String>,
    /// The point at which the program left the record, if it did and the point is known.
    pub(super) left: Option<Left>,
    /// Fates of the pages of the files with most waiting in the recorded run.
    pub(super) fates: Vec<FileFates>,
}

impl Followed {
    /// Adds the result of the guesses about files that the record does not have.
    pub(super) fn and(mut self, guessed: Self) -> Self {
        if let (Some(report), Some(other)) = (&mut self.report, guessed.report) {
            // Only the guesses were shown the reads of files that the program wrote itself.
            let own = other.strands.iter().filter(|one| one.name == REWRITTEN);
            report.reads += own.map(|one| one.reads).sum::<u64>();
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

/// A session that guesses.
pub(super) struct Follower {
    session: Session,
    /// Reads that may still be shown to those who guess, before the next one waits.
    patience: u32,
    roles: Roles,
    collective: Option<Collective>,
    /// Files that have had their turn.
    met: HashSet<FileId>,
    /// Files that are fetched only by a plan: their file systems are in user space.
    spared: HashSet<FileId>,
    user_space: UserSpace,
    unmeasured: Trouble,
    devices: Devices,
}

impl Follower {
    /// Starts guessing, for a rank with a part of the collective cache or for any other program. Files that the program writes itself are
    /// expected to be read as in this record. Observation times count from `start`.
    pub(super) fn start(
        guesses: Guesses,
        recorded: Option<Arc<Recorded>>,
        collective: Option<Collective>,
        start: Instant,
    ) -> anyhow::Result<Self> {
        let Guesses { roles, learnt } = guesses;
        let (devices, unmeasured) = (Devices::default(), Trouble::default());
        let (met, why_not) = (Arc::clone(&devices), Arc::clone(&unmeasured));
        let part = collective.clone();
        let names = roles.clone();
        let make = move || {
            let profiles = Profiles::load().unwrap_or_else(|why| {
                why_not.get_or_init(|| format!("{:#}", anyhow::Error::from(why)));
                Profiles::default()
            });
            let config = Config {
                budget_pages: memory::budget() / PAGE,
                free_pages: Some(|| memory::budget() / PAGE),
                ..Config::default()
            };
            let page_cache = PageCache::of(Arc::<Recorded>::default());
            let backend: Box<dyn Backend> = match part {
                Some(part) => Box::new(SharedCache::new(page_cache, &part)),
                None => Box::new(page_cache),
            };
            let signatures = Signatures::new().with_learnt(learnt);
            let engine = Engine::new(backend, config);
            let mut engine = engine.with_strand("signatures", Box::new(signatures));
            if let Some(recorded) = &recorded {
                let mut recording = Recording::of_rewritten(recorded);
                let files = recorded.rewritten();
                let files = files.map(|(id, meta)| (names.of(&meta.path), id));
                let rewritten = Rewritten::new(files, iter::from_fn(move || recording.next()));
                engine = engine.with_strand(REWRITTEN, Box::new(rewritten));
            }
            engine.with_profiles(move |dev, device| {
                let (profile, said) = chosen(device, profiles.of(dev));
                if let Ok(mut met) = met.lock() {
                    met.insert(device.name.clone(), said);
                }
                profile
            })
        };
        let session = Session::start(make, start).context("starting the engine's thread")?;
        Ok(Self {
            session,
            patience: 0,
            roles,
            collective,
            met: HashSet::new(),
            spared: HashSet::new(),
            user_space: UserSpace::default(),
            unmeasured,
            devices,
        })
    }

    /// Passes the observations on to the session's thread.
    pub(super) fn flush(&self) {
        if self.session.backlog() > 0 {
            self.session.wake();
        }
    }

    /// Bytes fetched so far, and of these, bytes that the program has read.
    pub(super) fn progress(&self) -> (u64, u64) {
        let ledger = self.session.ledger();
        (ledger.issued, ledger.useful + ledger.late)
    }

    /// The ledger so far.
    pub(super) fn so_far(&self) -> SoFar {
        let ledger = self.session.ledger();
        SoFar {
            useful: ledger.useful,
            late: ledger.late,
            wasted: Some(ledger.wasted),
            missed: ledger.missed,
        }
    }

    /// True if the program's current read may be on its way, or about to be requested.
    pub(super) fn is_busy(&self) -> bool {
        self.session.is_busy()
    }

    /// True if the program's next read is foreseen, so the kernel need not read ahead.
    pub(super) fn is_foreseen(&self) -> bool {
        self.session.is_foreseen()
    }

    /// The program's reads are not observed from now on, or were not at some time.
    pub(super) fn look_away(&self) {
        self.session.look_away();
    }

    /// End the session.
    pub(super) fn finish(self) -> Followed {
        Followed {
            // This process is about to end, and the session's threads with it.
            report: self.session.account().map(Report::from),
            files: Arc::default(),
            overtaken: HashSet::new(),
            trouble: None,
            unmeasured: self.unmeasured.get().cloned(),
            left: None,
            fates: Vec::new(),
        }
    }

    /// Descriptions of each device's profile, by the device's name.
    pub(super) fn devices(&self) -> BTreeMap<String, String> {
        self.devices
            .lock()
            .map(|met| met.clone())
            .unwrap_or_default()
    }

    /// Tell the session how a file is by now.
    fn tell(&self, file: FileId, meta: &FileMeta) {
        self.session.add_file(file, meta.clone());
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

    /// True if the session has use for a read. It has none if the program's reads do not wait and everything fetched is accounted for.
    fn wants(&mut self, sequence: &Sequence) -> bool {
        if sequence.first.waited() {
            self.patience = IDLE_READS;
        } else if self.patience > 0 && !self.session.is_busy() && self.session.ledger().is_closed()
        {
            self.patience -= 1;
        }
        self.patience > 0
    }
}

impl Sink for Follower {
    fn file(&mut self, id: FileId, meta: &FileMeta) {
        self.opened(id, meta);
    }

    fn named(&mut self, _: FileId, _: &FileMeta) {}

    fn opened(&mut self, id: FileId, meta: &FileMeta) {
        if self.collective.is_none() && self.user_space.has(meta.dev) {
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
            // The next entries lie elsewhere.
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
        let Access { file, kind, .. } = sequence.first;
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
        }
    }
}
