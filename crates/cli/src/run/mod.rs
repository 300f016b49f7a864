//! `foreread run` and `foreread record`: a program, observed, kept ahead of, and written down.
//!
//! Top down: [`run`] finds out what is known of the program, starts it with the preload library,
//! [`supervise`]s it to its end, and says what came of it. Whatever goes wrong on
//! foreread's side is said in the summary and costs the program nothing.
//!
//! Data flow: program → ring → [`watch`] → [`record`] and [`follow`] side by side.

mod child;
mod familiar;
mod follow;
mod preload;
mod readers;
mod record;
mod rest;
mod summary;
mod touched;
mod watch;

use std::collections::HashSet;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use anyhow::{Result, anyhow};
use foreread_engine::Phase;
use foreread_plan::format::{Reader, redefine};
use foreread_plan::{FileId, FileMeta, Identity, Meta, Sequence, ThreadId, ThreadMeta};
use foreread_ring::{Clock, Mode, Ring, Unobserved};
use foreread_sys::processor::Aside;
use foreread_sys::spawn;

use crate::list::quoted;
use crate::store::{self, Store};
use crate::words::{counted, plain};
use child::{Child, Ended, Incoming};
use follow::{Followed, Follower, Opened};
pub(crate) use preload::find as find_preload;
use readers::Readers;
use record::Recorder;
use rest::Rest;
use summary::Account;
use watch::{Sink, Watch};

pub(crate) use child::Ending;

/// The shortest sleeps between two looks at the ring: while reads wait and something is fetched for them, while they do
/// not wait, and while nothing is fetched: by the kernel's read-ahead perhaps, or pages of mappings are only written down.
const WAITING: Duration = Duration::from_micros(250);
const AHEAD: Duration = Duration::from_millis(1);
const LOOKING_ON: Duration = Duration::from_millis(2);
/// And the longest, and the only one while few reads are only written down. The ring holds 16384 events a thread: at a
/// million reads a second it fills in 16 ms.
const LONGEST: Duration = Duration::from_millis(4);
/// Events of one look that are many: of a thread that had a slot for each, the ring would be an eighth full.
const MANY: usize = 2048;
/// How long what is reported may wait for the session to look at its plan. The plan may lie on a file system that does not
/// answer.
const DECIDED: Duration = Duration::from_millis(20);
/// Looks at the ring after the program has ended; its events are there by then.
const LAST_LOOKS: usize = 1000;
/// Below this share of foreseen reads a record is replaced by what was seen this time.
const FORESEEN_ENOUGH: f64 = 0.9;

/// What to run, and how.
#[derive(Clone, Debug)]
pub(crate) struct RunArgs {
    /// The command and its arguments.
    pub(crate) command: Vec<OsString>,
    /// Add nothing to standard error.
    pub(crate) quiet: bool,
    /// Add the whole account to standard error instead of one line.
    pub(crate) explain: bool,
    /// Write the account to this file as JSON.
    pub(crate) json: Option<PathBuf>,
    /// Use what is known.
    pub(crate) prefetch: bool,
    /// Keep what is learnt.
    pub(crate) record: bool,
    /// Keep it in this file, not in the store.
    pub(crate) output: Option<PathBuf>,
}

/// Run the command to its end.
///
/// # Errors
/// Only when the command could not be watched to its end.
pub(crate) fn run(args: &RunArgs) -> Result<Ending> {
    let mut account = Account::new(args);
    let mut incoming = match Incoming::block() {
        Ok(incoming) => incoming,
        Err(why) => {
            // Not one descriptor to hear of the program by.
            if !args.quiet {
                eprintln!("foreread: stood aside: {}", plain(&why.to_string()));
            }
            return Ok(not_run(args, child::failed(spawn::replace(&args.command))));
        }
    };
    let started = Instant::now();
    let began = SystemTime::now();
    let place = Place::of(args, &mut account);
    let library = account.note(find_preload().map_err(anyhow::Error::msg));
    let mut plan = place.plan(args, &mut account);
    let known = plan.known.take().filter(|_| library.is_some());
    let opened = known.map(|(found, reader)| {
        let opened = Opened::new(reader, &found.foreign);
        account.followed = Some(found);
        opened
    });
    account.baseline = opened.as_ref().and_then(|one| one.summary.clone());
    // While what the program will read first comes from its disk.
    incoming.watch_group();
    let observed = library.and_then(|library| observe(library, &mut account));
    if let Some(observed) = &observed {
        if let Some(opened) = opened.as_ref().filter(|_| account.has_own_record()) {
            observed.ring.set_advice(opened.advice());
        }
        // Before the program starts, or its first reads would go unseen.
        observed.ring.set_mode(match (&opened, &plan.destination) {
            (Some(_), _) => Mode::Progress,
            (None, Some(_)) => Mode::Record,
            (None, None) => Mode::Mute,
        });
    }
    // From here on the record is gone through, and what is missing fetched, while the program is started and loaded.
    let follower = opened.filter(|_| observed.is_some()).and_then(|opened| {
        let started = Follower::start(opened, started);
        account.note(started)
    });
    if follower.is_none() {
        account.followed = None;
        account.baseline = None;
    }
    let child = match Child::spawn(&args.command, observed.as_ref(), incoming) {
        Ok(child) => child,
        Err(failure) => return Ok(not_run(args, failure)),
    };
    let recorder = match (&plan.destination, &observed) {
        (Some(path), Some(_)) => Some(Recorder::new(path, plan.meta(began), store::RECORD_LIMIT)),
        _ => None,
    };
    if let Some(observed) = &observed
        && follower.is_none()
    {
        let recording = recorder.as_ref().map(|_| Mode::Record);
        observed.ring.set_mode(recording.unwrap_or(Mode::Mute));
    }
    if let Some(found) = &account.followed {
        found.mark_used();
    }
    if let Some(store) = &plan.store {
        store.tidy();
    }
    let (ring, library) = observed.map(|one| (one.ring, one.library)).unzip();
    let mut supervisor = Supervisor {
        ring,
        watch: Watch::new(began, library),
        records: recorder.is_some(),
        replaces: recorder.is_some() && !account.has_lasting_record(),
        sinks: Sinks {
            recorder,
            follower,
            waited: false,
        },
        aside: Aside::new(),
        readers: Readers::new(),
        rest: Rest::of(child.pid()),
        rested: false,
        started,
    };
    let ended = supervisor.supervise(&child)?;
    account.wall_ns = started.elapsed().as_nanos() as u64;
    account.ended(&ended);
    // A file of the user's own is none of the store's.
    let store = plan.store.filter(|_| args.output.is_none());
    supervisor.close(&mut account, store.as_ref());
    account.print(args);
    Ok(ended.ending)
}

/// Says why the command could not be run; how foreread is to end for that.
fn not_run(args: &RunArgs, (ending, why): (Ending, std::io::Error)) -> Ending {
    let name = quoted(&args.command[0].to_string_lossy());
    eprintln!("foreread: {name}: {}", plain(&why.to_string()));
    ending
}

/// Where to look for what is known of the program.
struct Place {
    identity: Identity,
    store: Option<Store>,
}

/// What is known of the program, and where what is learnt goes.
struct Plan {
    identity: Identity,
    store: Option<Store>,
    known: Option<(store::Found, Reader)>,
    destination: Option<PathBuf>,
}

impl Place {
    /// Find the place, and have the record there fetched. A store that cannot be used costs the speed-up and is said.
    fn of(args: &RunArgs, account: &mut Account) -> Self {
        let identity = store::identity_of(&args.command);
        let store = account.note(Store::open_soon());
        if let Some(store) = &store
            && args.prefetch
        {
            store.announce(&identity);
        }
        Self { identity, store }
    }

    /// Look the program up.
    fn plan(self, args: &RunArgs, account: &mut Account) -> Plan {
        let Self { identity, store } = self;
        let looked = match &store {
            Some(store) if args.prefetch => store.find(&identity),
            Some(store) if args.record && args.output.is_none() => {
                store.look(&identity).map(|()| None)
            }
            _ => Ok(None),
        };
        let taken = looked.as_ref().is_err_and(store::is_newer);
        let known = account.note(looked.map_err(|why| {
            let stays = "; it is left as it is, and nothing is recorded";
            anyhow!("{why:#}{}", if taken { stays } else { "" })
        }));
        let known = known.flatten();
        if let Some(trouble) = known.as_ref().and_then(|(found, _)| found.trouble.clone()) {
            account.say(trouble);
        }
        let destination = match (&args.output, &store) {
            (Some(path), _) => {
                let refused = |why| anyhow!("{why:#}; nothing is recorded");
                account.note(record::destination(path).map_err(refused))
            }
            (None, Some(store)) if args.record && !taken => Some(store.path_for(&identity)),
            _ => None,
        };
        Plan {
            identity,
            store,
            known,
            destination,
        }
    }
}

impl Plan {
    fn meta(&self, began: SystemTime) -> Meta {
        Meta {
            identity: self.identity.clone(),
            recorded_at: began
                .duration_since(UNIX_EPOCH)
                .map_or(0, |age| age.as_secs()),
            writer: concat!("foreread ", env!("CARGO_PKG_VERSION")).to_owned(),
        }
    }
}

/// A ring, and the library that fills it.
pub(super) struct Observed {
    ring: Ring,
    library: PathBuf,
}

/// Make what observing by this library takes; `None`, with the reason noted, where it cannot be had.
fn observe(library: PathBuf, account: &mut Account) -> Option<Observed> {
    let ring = account.note(Ring::create(Clock::detect()).map_err(anyhow::Error::new))?;
    Some(Observed { ring, library })
}

/// Recorder and follower, whichever there are.
struct Sinks {
    recorder: Option<Recorder>,
    follower: Option<Follower>,
    /// Whether a read has waited for its device since the last look.
    waited: bool,
}

impl Sink for Sinks {
    fn file(&mut self, id: FileId, meta: &FileMeta) {
        if let Some(recorder) = &mut self.recorder {
            recorder.file(id, meta);
        }
        if let Some(follower) = &mut self.follower {
            follower.file(id, meta);
        }
    }

    fn thread(&mut self, id: ThreadId, meta: &ThreadMeta) {
        if let Some(recorder) = &mut self.recorder {
            recorder.thread(id, meta);
        }
    }

    fn accesses(&mut self, sequence: Sequence) {
        self.waited |= sequence.first.waited();
        if let Some(recorder) = &mut self.recorder {
            recorder.accesses(sequence);
        }
        if let Some(follower) = &mut self.follower {
            follower.accesses(sequence);
        }
    }
}

struct Supervisor {
    ring: Option<Ring>,
    watch: Watch,
    sinks: Sinks,
    /// Whether what is learnt may be kept.
    records: bool,
    /// Whether this run gets a record of its own, whatever becomes of following another.
    replaces: bool,
    aside: Aside,
    readers: Readers,
    rest: Rest,
    /// Whether the program was left to itself at any time.
    rested: bool,
    started: Instant,
}

impl Supervisor {
    /// Watch the program to its end.
    fn supervise(&mut self, child: &Child) -> Result<Ended> {
        let mut pause = WAITING;
        loop {
            let observing = self.observing();
            let timeout = if observing {
                Some(pause)
            } else {
                self.rest.pause()
            };
            if let Some(ended) = self.wait(child, timeout)? {
                return Ok(ended);
            }
            if !observing {
                self.look_up();
                continue;
            }
            if self.is_deciding() {
                continue;
            }
            self.sinks.waited = false;
            let seen = self.look();
            let shortest = match &self.sinks.follower {
                Some(follower) if !follower.is_busy() => LOOKING_ON,
                Some(_) if self.sinks.waited => WAITING,
                Some(_) => AHEAD,
                None if seen > MANY || self.watch.touched.has_news() => LOOKING_ON,
                None => LONGEST,
            };
            pause = if seen > 0 {
                shortest
            } else {
                (pause * 2).clamp(shortest, LONGEST)
            };
        }
    }

    fn wait(&self, child: &Child, timeout: Option<Duration>) -> Result<Option<Ended>> {
        match &self.ring {
            Some(ring) => ring.waiting(|| child.wait(timeout)),
            None => child.wait(timeout),
        }
    }

    /// Whether the session still looks at its plan, as it does for a millisecond: where it finds all of that in memory, what
    /// is reported till then need not be gone through.
    fn is_deciding(&self) -> bool {
        let follower = self.sinks.follower.as_ref();
        self.started.elapsed() < DECIDED && follower.is_some_and(|one| one.decided().is_none())
    }

    /// Take what was reported since the last look; how much that was.
    fn look(&mut self) -> usize {
        if let Some(follower) = &self.sinks.follower
            && let Some(phase) = follower.decided()
            && !self.watch.observed()
            && phase == Phase::Hot
            // Else it may have been faster than the look at its plan, and what it read is to be known.
            && !self.rest.has_fetched()
        {
            self.heed(phase);
            if !self.observing() {
                return 0;
            }
        }
        let Some(ring) = &mut self.ring else {
            return 0;
        };
        let (watch, sinks) = (&mut self.watch, &mut self.sinks);
        let readers = &mut self.readers;
        let mut seen = 0;
        ring.poll(&mut |event| {
            seen += 1;
            readers.saw(&event);
            watch.take(event, sinks);
        });
        readers.look();
        self.aside.keep();
        watch.sample(self.started.elapsed().as_nanos() as u64, sinks);
        for (program, is_familiar) in watch.familiar.changes() {
            ring.set_familiar(&program, is_familiar);
        }
        if let Some(recorder) = &mut sinks.recorder {
            recorder.flush();
        }
        if let Some(follower) = &mut sinks.follower {
            let phase = follower.flush();
            ring.give_up(!follower.is_foreseen());
            self.heed(phase);
        }
        seen
    }

    /// Observe what the session in this phase needs.
    fn heed(&mut self, phase: Phase) {
        let sinks = &mut self.sinks;
        match phase {
            Phase::Ahead | Phase::Lost => {}
            // Nothing is left to watch for, unless the command is to get a record of its own.
            Phase::Hot | Phase::Finished
                if self.replaces
                    || sinks.recorder.is_some()
                        && sinks.follower.as_ref().is_some_and(Follower::is_damaged) => {}
            Phase::Hot | Phase::Finished => {
                // What is written down so far would pass for all the program reads.
                if let Some(recorder) = sinks.recorder.take() {
                    recorder.discard();
                }
                // Muted it is when the program has ended as well.
                if phase == Phase::Hot
                    && self.observing()
                    && let Some(follower) = &self.sinks.follower
                {
                    self.rest.begin(follower.paid_back_in());
                }
                self.rested = true;
                self.set_mode(Mode::Mute);
            }
            Phase::GaveUp => {
                self.set_mode(if self.sinks.recorder.is_some() {
                    Mode::Record
                } else {
                    Mode::Mute
                });
            }
        }
    }

    /// See whether a program left to itself needs help by now.
    fn look_up(&mut self) {
        if self.rest.is_over()
            && let Some(follower) = &mut self.sinks.follower
        {
            follower.resume();
            self.set_mode(Mode::Progress);
        }
    }

    fn observing(&self) -> bool {
        self.ring
            .as_ref()
            .is_some_and(|ring| ring.mode() != Mode::Mute)
    }

    fn set_mode(&self, mode: Mode) {
        if let Some(ring) = &self.ring
            && ring.mode() != mode
        {
            ring.set_mode(mode);
        }
    }

    /// Take the last reports, end the session, keep the record, in the store if it goes there, and enter it all in
    /// the account.
    fn close(mut self, account: &mut Account, store: Option<&Store>) {
        let was_observing = self.observing();
        if let Some(ring) = &self.ring {
            // What the program has started may outlive it.
            ring.give_up(true);
        }
        self.set_mode(Mode::Mute);
        // What is left of a program that was not observed was reported before it was let go.
        for _ in 0..if was_observing { LAST_LOOKS } else { 0 } {
            if self.look() == 0 && self.ring.as_ref().is_none_or(Ring::drained) {
                break;
            }
        }
        self.watch.finish(&mut self.sinks);
        account.lost = self.ring.as_ref().map_or(0, Ring::lost);
        account.observed = self.watch.observed() || self.rested || !was_observing;
        account.without_stdio = self.watch.without_stdio();
        if let Some(unobserved) = self.ring.as_ref().map(Ring::unobserved)
            && account.observed
            && let Some(sentence) = unseen(unobserved)
        {
            account.say(sentence);
        }
        let Sinks {
            recorder, follower, ..
        } = self.sinks;
        let mut changed = HashSet::new();
        if let Some(follower) = follower {
            let devices = follower.devices();
            let Followed {
                report,
                files,
                overtaken,
                trouble,
                unmeasured,
            } = follower.finish();
            changed = overtaken;
            if let Some(why) = unmeasured {
                account.say(why);
            }
            if let Some(trouble) = trouble {
                account.damaged(trouble);
            }
            match report {
                Some(mut report) => {
                    // With what each was taken for.
                    report.devices.retain(|name| !devices.contains_key(name));
                    report.devices.extend(devices.into_values());
                    account.followed_to(report, &files);
                }
                None => {
                    let why = "the prefetch engine died, or a file system does not answer it";
                    account.say(format!("{why}; the program was not affected"));
                }
            }
        }
        match recorder {
            Some(recorder) if account.worth_recording(&recorder) => {
                let summary = account.record_summary(&recorder);
                let kept = recorder.commit(summary).and_then(|path| {
                    store.map_or(Ok(()), |store| store.settle(&path))?;
                    Ok(path)
                });
                match kept {
                    Ok(path) => account.recorded = Some(path),
                    Err(why) => account.say(format!("{why:#}; not recorded")),
                }
            }
            Some(recorder) => recorder.discard(),
            None => {}
        }
        // Unmapped together with all the rest, in a moment: by itself it would hold up the other threads.
        std::mem::forget(self.ring);
        if self.records
            && let Some(path) = account.outgrown()
        {
            // A record that cannot be deleted is looked at again by the next run.
            let _ = std::fs::remove_file(path);
        } else if self.records
            && !changed.is_empty()
            && let Some(path) = account.goes_on_with()
        {
            // Or every later run would tell of them. A record that cannot be written anew stays as it is.
            let _ = redefine(path, |meta| {
                let now = changed
                    .contains(&meta.path)
                    .then(|| self.watch.facts(&meta.path))??;
                Some(FileMeta {
                    written: meta.written,
                    advice: meta.advice,
                    ..now
                })
            });
        }
    }
}

/// Which of the programs it started were not observed, and why, in one sentence.
fn unseen(unobserved: Unobserved) -> Option<String> {
    let Unobserved {
        cleared,
        apart,
        other,
    } = unobserved;
    let count = cleared.saturating_add(apart).saturating_add(other);
    let were = counted(count.into(), "process was", "processes were");
    let why: Vec<&str> = [
        (other, "statically linked"),
        (other, "privileged"),
        (apart, "in another PID namespace"),
        (apart, "without /proc"),
        (cleared, "given an environment without foreread's variables"),
    ]
    .into_iter()
    .filter_map(|(count, why)| (count > 0).then_some(why))
    .collect();
    let why = match why[..] {
        [] => return None,
        [one] => one.to_owned(),
        [one, two] => format!("{one} or {two}"),
        [ref all @ .., last] => format!("{}, or {last}", all.join(", ")),
    };
    Some(format!("{were} not observed: {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn why_processes_were_not_observed_is_told_as_far_as_it_is_known() {
        let told = |cleared, apart, other| {
            unseen(Unobserved {
                cleared,
                apart,
                other,
            })
        };
        assert_eq!(told(0, 0, 0), None);
        for (counts, said) in [
            (
                (0, 0, 1),
                "1 process was not observed: statically linked or privileged",
            ),
            (
                (0, 2, 0),
                "2 processes were not observed: in another PID namespace or without /proc",
            ),
            (
                (1, 0, 1),
                "2 processes were not observed: statically linked, privileged, \
                 or given an environment without foreread's variables",
            ),
        ] {
            assert_eq!(told(counts.0, counts.1, counts.2).as_deref(), Some(said));
        }
    }
}
