//! Watching a program to its end, in the helper: reports are taken, and handed to whoever records and follows.
//!
//! Data flow: [`Observing`] → [`Watch`] → [`Sinks`]; at the end all of it → the account.

use std::collections::HashSet;
use std::path::Path;
use std::time::{Duration, Instant};

use foreread_backend::Collective;
use foreread_core::SoFar;
use foreread_observe::{Budget, Progress, Wanted};
use foreread_plan::format::redefine;
use foreread_plan::{FileId, FileMeta, Identity, PAGE, Rank, Sequence, ThreadId, ThreadMeta};
use foreread_ring::Board;
use foreread_store::Store;
use foreread_sys::processor::Aside;
use foreread_words::{counted, shown};

use super::cache::CacheAccount;
use super::follow::{Followed, Follower, Guesses};
use super::helper::{Finished, Link};
use super::live::{How, Live};
use super::observer::Observing;
use super::pace::{Care, Pace};
use super::record::Recorder;
use super::record::part::Limits;
use super::served::{LeftAlone, Served};
use super::start_up::StartUp;
use super::summary::Account;
use super::timeline::{Timeline, Went};
use super::unseen::Explained;
use super::watch::{Sink, Watch};

/// Looks at what is reported after the program has ended; all of it is there by then.
const LAST_LOOKS: usize = 1000;
/// Reports that one look takes, at most, and how long it may take: what four threads' full rings hold, and the time in which one
/// ring fills at a million reads a second. What is left is taken by the next look, at once.
const LOOK: (usize, Duration) = (4 << 14, Duration::from_millis(16));

/// Recorder, and whoever goes by a record, whichever there are.
pub(super) struct Sinks {
    pub(super) recorder: Option<Recorder>,
    pub(super) follower: Option<Follower>,
    pub(super) served: Option<Served>,
    explained: Explained,
    timeline: Timeline,
}

impl Sinks {
    pub(super) fn new(recorder: Option<Recorder>, served: Option<Served>) -> Self {
        Self {
            recorder,
            follower: None,
            served,
            explained: Explained::default(),
            timeline: Timeline::default(),
        }
    }
}

impl Sinks {
    /// Takes a sample of how far the device and whoever fetches are, in a run that is so old.
    fn sample(&mut self, age: Duration) {
        let (served, follower) = (&self.served, &self.follower);
        let progress = || progress(served.as_ref(), follower.as_ref());
        self.timeline.look(age.as_nanos() as u64, progress);
    }

    /// How far the run is, for whoever looks at it.
    fn live(&self, age: Duration, is_observed: bool) -> Live {
        let (served, follower) = (self.served.as_ref(), self.follower.as_ref());
        let progress = progress(served, follower);
        let (sample, reads, waited_ns) = self.timeline.now(age.as_nanos() as u64, progress);
        let how = match (served, follower) {
            (Some(served), _) if served.has_left() => How::Strayed,
            (Some(_), _) => How::Served,
            (None, Some(_)) => How::Guessed,
            (None, None) if is_observed => How::Observed,
            (None, None) => How::Alone,
        };
        let so_far = [served.map(Served::so_far), follower.map(Follower::so_far)];
        let so_far = so_far.into_iter().flatten();
        let so_far = so_far.reduce(|one, other| SoFar {
            useful: one.useful + other.useful,
            late: one.late + other.late,
            wasted: one.wasted.and_then(|wasted| Some(wasted + other.wasted?)),
            // Both were shown these reads.
            missed: one.missed,
        });
        let so_far = so_far.unwrap_or_default();
        Live {
            how,
            is_observed,
            at_ns: sample.at_ns,
            ahead_bytes: sample.ahead_bytes,
            passed_bytes: sample.passed_bytes,
            device_bytes: sample.device_bytes,
            queue: sample.queue,
            reads,
            waited_ns,
            useful_bytes: so_far.useful,
            late_bytes: so_far.late,
            wasted_bytes: so_far.wasted,
            missed_bytes: so_far.missed,
        }
    }

    /// The program is not observed from now on, or was not all the time.
    fn look_away(&mut self) {
        self.follower.iter().for_each(Follower::look_away);
        self.served.iter_mut().for_each(Served::look_away);
    }
}

/// Bytes fetched, or found in memory, and of these, bytes that the program has read.
fn progress(served: Option<&Served>, follower: Option<&Follower>) -> Option<(u64, u64)> {
    match (served, follower) {
        (Some(served), _) => Some(served.progress()),
        (None, Some(follower)) => Some(follower.progress()),
        (None, None) => None,
    }
}

impl Sink for Sinks {
    fn file(&mut self, id: FileId, meta: &FileMeta) {
        self.explained.file(id, meta);
        self.timeline.file(meta);
        if let Some(recorder) = &mut self.recorder {
            recorder.file(id, meta);
        }
        if let Some(follower) = &mut self.follower {
            follower.file(id, meta);
        }
        if let Some(served) = &mut self.served {
            served.file(id, meta);
        }
    }

    fn named(&mut self, id: FileId, meta: &FileMeta) {
        self.explained.file(id, meta);
        if let Some(recorder) = &mut self.recorder {
            recorder.file(id, meta);
        }
        if let Some(follower) = &mut self.follower {
            follower.named(id, meta);
        }
        if let Some(served) = &mut self.served {
            served.named(id, meta);
        }
    }

    fn trusts(&self, id: FileId) -> bool {
        self.served.as_ref().is_some_and(|one| one.trusts(id))
    }

    fn opened(&mut self, id: FileId, meta: &FileMeta) {
        if let Some(follower) = &mut self.follower {
            follower.opened(id, meta);
        }
    }

    fn grown(&mut self, id: FileId, meta: &FileMeta) {
        self.explained.file(id, meta);
        if let Some(follower) = &mut self.follower {
            follower.grown(id, meta);
        }
    }

    fn doubted(&mut self, id: FileId) {
        if let Some(follower) = &mut self.follower {
            follower.doubted(id);
        }
        if let Some(served) = &mut self.served {
            served.doubted(id);
        }
    }

    fn thread(&mut self, id: ThreadId, meta: &ThreadMeta) {
        if let Some(recorder) = &mut self.recorder {
            recorder.thread(id, meta);
        }
    }

    fn accesses(&mut self, sequence: Sequence) {
        self.explained.accesses(&sequence);
        self.timeline.accesses(&sequence);
        if let Some(recorder) = &mut self.recorder {
            recorder.accesses(sequence);
        }
        let file = sequence.first.file;
        let is_served = self.served.as_ref().is_some_and(|one| one.has(file));
        if let Some(follower) = self.follower.as_mut().filter(|_| !is_served) {
            follower.accesses(sequence);
        }
        if let Some(served) = &mut self.served {
            served.accesses(sequence);
        }
    }
}

/// Watches the program, in the helper.
pub(super) struct Supervisor {
    pub(super) observing: Option<Observing>,
    pub(super) watch: Watch,
    pub(super) sinks: Sinks,
    /// Whether what is learnt may be kept.
    pub(super) records: bool,
    /// Whether this run gets a record of its own, whatever becomes of following another.
    pub(super) replaces: bool,
    /// What is known of a program that is to be helped by what it is seen to do, until it is.
    pub(super) guesses: Option<Guesses>,
    /// Its part of the collective cache, if it is a rank.
    pub(super) collective: Option<Collective>,
    /// What a record may have at most.
    pub(super) limits: Limits,
    /// What came of a plan that the program was left alone by.
    pub(super) left_alone: Option<LeftAlone>,
    /// Why it was not.
    pub(super) unguessed: Option<anyhow::Error>,
    pub(super) aside: Aside,
    pub(super) pace: Pace,
    /// Whether the program was left to itself at any time.
    pub(super) rested: bool,
    pub(super) started: Instant,
    /// Whether the program was left to itself for a while.
    pub(super) looked_away: bool,
    /// Where whoever looks at the run is answered.
    pub(super) board: Option<Board>,
    /// The start-up of a service, to whose end it is watched.
    pub(super) start_up: Option<StartUp>,
}

impl Supervisor {
    /// Watch the program to its end, or to that of its start-up.
    pub(super) fn supervise(&mut self, link: &mut Link) -> Finished {
        let mut is_behind = false;
        loop {
            let observing = self.observing();
            self.answer(observing);
            if !observing && let Some(start_up) = &self.start_up {
                return start_up.finished(self.started.elapsed());
            }
            let pause = if is_behind {
                Duration::ZERO
            } else {
                self.pace.pause()
            };
            let timeout = observing.then_some(pause);
            if let Some(finished) = self.wait(link, timeout) {
                return finished;
            }
            let age = self.started.elapsed();
            self.sinks.sample(age);
            if !observing {
                continue;
            }
            let mut budget = Budget::new(LOOK.0, LOOK.1);
            let seen = self.look(&mut budget).events;
            is_behind = budget.is_spent();
            if let Some(start_up) = &mut self.start_up
                && start_up.looked(seen, age)
            {
                // What it reads from now on nobody sees.
                self.sinks.look_away();
                return start_up.finished(start_up.took());
            }
            let care = self.care();
            self.pace.looked(seen, care);
        }
    }

    /// Answers whoever looks at the run, and before nobody comes by any more.
    fn answer(&self, observing: bool) {
        if let Some(board) = &self.board
            && (!observing || board.is_asked())
        {
            let live = self.sinks.live(self.started.elapsed(), observing);
            board.answer(live.words());
        }
    }

    /// What is done for the program at present.
    fn care(&self) -> Care {
        match &self.sinks.follower {
            Some(follower) if follower.is_busy() => Care::Fetching,
            Some(_) => Care::LookingOn,
            _ => Care::Recording {
                touching: self.watch.touched.has_news(),
            },
        }
    }

    fn wait(&self, link: &mut Link, timeout: Option<Duration>) -> Option<Finished> {
        match &self.observing {
            Some(observing) => observing.waiting(|| link.wait(timeout)),
            None => link.wait(timeout),
        }
    }

    /// Take what was reported since the last look, within the budget.
    fn look(&mut self, budget: &mut Budget) -> Progress {
        let Some(observing) = &mut self.observing else {
            return Progress::default();
        };
        let (watch, sinks) = (&mut self.watch, &mut self.sinks);
        let pace = &mut self.pace;
        let seen = observing.poll(budget, &mut |event| {
            pace.saw(&event);
            watch.take(event, sinks);
        });
        self.aside.keep();
        watch.sample(self.started.elapsed().as_nanos() as u64, sinks);
        if let Some(recorder) = &mut sinks.recorder {
            recorder.flush();
        }
        let served = self.sinks.served.as_ref();
        let may_guess = served.map_or(self.pace.has_waited(), Served::has_strayed);
        if may_guess && let Some(guesses) = self.guesses.take() {
            self.guess(guesses);
        }
        if let (Some(observing), Some(follower)) = (&self.observing, &self.sinks.follower) {
            follower.flush();
            // A program that has strayed from its plan is read ahead for by the kernel, unless the guesses foresee it.
            observing.foresee(follower.is_foreseen());
        }
        if let Some(served) = &self.sinks.served {
            let (has_left, is_over) = (served.has_left(), served.is_over());
            if has_left {
                self.give_up();
            } else if is_over {
                self.let_go();
            }
        }
        seen
    }

    /// The program does something else than its record says: the record is made anew, if it may be.
    fn give_up(&mut self) {
        if let Some(observing) = &self.observing {
            observing.foresee(false);
        }
        match &mut self.sinks.recorder {
            Some(recorder) => {
                recorder.is_needed();
                self.want(Wanted::Everything);
            }
            None => self.look_away(),
        }
    }

    /// Whether the command is to get a record of its own, whatever becomes of the session.
    fn is_recorded(&self) -> bool {
        let sinks = &self.sinks;
        let is_damaged = sinks.served.as_ref().is_some_and(Served::is_damaged);
        self.replaces || sinks.recorder.is_some() && is_damaged
    }

    /// Nothing is left to watch for, unless the command is to get a record of its own.
    fn let_go(&mut self) {
        if self.is_recorded() {
            return;
        }
        // What is written down so far would pass for all the program reads.
        if let Some(recorder) = self.sinks.recorder.take() {
            recorder.discard();
        }
        self.rested = true;
        self.look_away();
    }

    /// Start a session for a program of which nothing is known, now that a read has waited. Until then there would be
    /// nothing to gain by one.
    fn guess(&mut self, guesses: Guesses) {
        match Follower::start(guesses, self.collective.clone(), self.started) {
            Ok(mut follower) => {
                for (id, meta) in self.watch.files().all_met() {
                    follower.file(id, meta);
                }
                self.sinks.follower = Some(follower);
            }
            Err(why) => self.unguessed = Some(why),
        }
    }

    /// Leave a program to itself that still runs.
    fn look_away(&mut self) {
        if self.observing() {
            self.sinks.look_away();
        }
        self.want(Wanted::Nothing);
    }

    fn observing(&self) -> bool {
        let observing = self.observing.as_ref();
        observing.is_some_and(|one| one.observer().wanted() != Wanted::Nothing)
    }

    fn want(&mut self, wanted: Wanted) {
        if let Some(observing) = &mut self.observing
            && observing.observer().wanted() != wanted
        {
            self.looked_away |= wanted == Wanted::Nothing;
            observing.observer_mut().want(wanted);
        }
    }

    /// Take the last reports of the program, whose file is `exe`, end the session, keep the record, in the store if it goes
    /// there, and enter it all in the account. How the run went, over its time.
    pub(super) fn close(
        &mut self,
        account: &mut Account,
        exe: &Path,
        kept: Option<Kept<'_>>,
        link: &Link,
    ) -> Went {
        link.doing("taking the program's last reports");
        let was_observing = self.observing();
        let looked_away = self.looked_away;
        if let Some(observing) = &self.observing {
            // What the program has started may outlive it.
            observing.foresee(false);
        }
        self.want(Wanted::Nothing);
        // What is left of a program that was not observed was reported before it was let go.
        for _ in 0..if was_observing { LAST_LOOKS } else { 0 } {
            let progress = self.look(&mut Budget::new(LOOK.0, LOOK.1));
            if progress.events == 0 && !progress.more {
                break;
            }
        }
        link.doing("looking at the files that the program wrote");
        self.watch.finish(&mut self.sinks);
        account.cache = self.collective.as_ref().map(CacheAccount::of);
        account.is_onward = self.sinks.timeline.is_onward();
        account.lost = self.observing.as_ref().map_or(0, Observing::lost);
        account.observed = self.watch.observed() || self.rested || !was_observing;
        account.without_stdio = self.watch.without_stdio();
        let unseen = self.observing.as_ref().map(Observing::unobserved);
        let unseen = unseen.unwrap_or_default();
        let is_partly_observed = account.lost > 0
            || account.without_stdio
            || !unseen.is_empty()
            || account.is_observed_in_part();
        if is_partly_observed {
            self.sinks.look_away();
        }
        if !self.watch.observed() {
            let observing = self.observing.as_ref();
            account.hidden = observing.and_then(|observing| observing.why_hidden(exe));
        }
        if account.observed && account.hidden.is_none() {
            let unseen = unseen.into_iter();
            unseen.for_each(|said| account.not_observed(said));
        }
        if was_observing && !looked_away && self.watch.observed() {
            account.unseen(&self.sinks.explained);
        }
        account.as_unobserved_as_recorded();
        if self.watch.unnamed() > 0 {
            let names = counted(self.watch.unnamed(), "name", "names");
            account.remark(format!("{names} more than a record holds were looked up"));
        }
        if let Some(why) = self.unguessed.take() {
            account.say(format!("{why:#}"));
        }
        let (recorder, follower) = (self.sinks.recorder.take(), self.sinks.follower.take());
        let mistaken = match (self.watch.rank(), account.rank) {
            // By itself it is one of nobody else's.
            (Some(Rank { of: 1, .. }) | None, _) => None,
            (told, known) => told.filter(|_| told != known),
        };
        let mut recorder = match (recorder, mistaken) {
            (Some(recorder), Some(Rank { rank, of })) => {
                let launcher = account.rank.map_or_else(
                    || "its launcher has not told".to_owned(),
                    |known| format!("its launcher told {} of {}", known.rank, known.of),
                );
                account.say(format!(
                    "MPI has it as rank {rank} of {of}, and {launcher}; not recorded"
                ));
                recorder.discard();
                None
            }
            (recorder, _) => recorder,
        };
        let mut changed = HashSet::new();
        let devices = follower.as_ref().map(Follower::devices).unwrap_or_default();
        let served = self.sinks.served.take();
        let left_alone = self.left_alone.take().map(LeftAlone::finish);
        let is_alone = left_alone.is_some();
        let served = served.map(|served| served.finish(account.device_bytes()));
        let guessed = follower.map(Follower::finish);
        let followed = left_alone.or(match (served, guessed) {
            (Some(served), Some(guessed)) => Some(served.and(guessed)),
            (served, guessed) => served.or(guessed),
        });
        if let Some(followed) = followed {
            link.doing("closing the account of what was fetched");
            let Followed {
                report,
                files,
                overtaken,
                trouble,
                unmeasured,
                left,
                fates,
            } = followed;
            account.fates = fates;
            account.left = left.and_then(|left| {
                let meta = self.watch.files().known(left.file)?;
                let path = shown(&meta.path.to_string_lossy()).into_owned();
                Some((left.reads, path, left.page * PAGE))
            });
            changed = overtaken;
            if let Some(why) = unmeasured {
                account.remark(why);
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
        if let Some(recorder) = &mut recorder {
            // Those that were taken for what the record says.
            for (id, met) in self.watch.files().all_met() {
                if changed.contains(&met.path)
                    && let Some(now) = self.watch.facts(&met.path)
                {
                    let written = met.written;
                    recorder.file(id, &FileMeta { written, ..now });
                }
            }
        }
        match recorder {
            Some(recorder) if account.worth_recording(&recorder) => {
                let path = recorder.place().path();
                link.doing(&format!("writing the record {}", path.display()));
                let summary = account.record_summary(&recorder);
                let settled = recorder.commit(summary, self.limits).and_then(|left_out| {
                    kept.map_or(Ok(()), |Kept { store, identity }| store.settle(identity))?;
                    Ok(left_out)
                });
                match settled {
                    Ok(left_out) => {
                        account.recorded = Some(path).filter(|_| account.tells());
                        account.left_out = left_out;
                    }
                    Err(why) => account.say(format!("{why:#}; not recorded")),
                }
            }
            Some(recorder) => recorder.discard(),
            None => {}
        }
        let own = kept.map(|Kept { store, identity }| store.place_for(identity));
        let Some(own) = own.filter(|_| self.records) else {
            return self.went();
        };
        // Of a damaged record that nobody followed there is nothing to be replaced by.
        if account.outgrown() || is_alone && account.is_damaged() {
            // A record that cannot be deleted is looked at again by the next run.
            let _ = own.remove();
        } else if !changed.is_empty() && account.goes_on_with_own() {
            // Or every later run would tell of them. A record that cannot be written anew stays as it is.
            let _ = redefine(&own, |meta| {
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
        self.went()
    }

    /// How the run went, over its time.
    fn went(&mut self) -> Went {
        let files = self.watch.files();
        let path = |file| {
            let meta = files.known(file)?;
            Some(shown(&meta.path.to_string_lossy()).into_owned())
        };
        std::mem::take(&mut self.sinks.timeline).finish(path)
    }
}

/// Where a program's record is kept.
#[derive(Clone, Copy)]
pub(super) struct Kept<'a> {
    pub(super) store: &'a Store,
    pub(super) identity: &'a Identity,
}

#[cfg(test)]
mod tests;
