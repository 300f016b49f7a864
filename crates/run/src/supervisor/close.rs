//! The end of a watched program: the last reports, the session's account, and the record.
//!
//! Data flow: [`Supervisor::close`] → [`Account`] and [`Went`]; the record → the store.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use foreread_observe::{Budget, Wanted};
use foreread_plan::format::redefine;
use foreread_plan::{FileMeta, Identity, PAGE, Rank};
use foreread_store::Store;
use foreread_words::{counted, shown};

use super::{LOOK, Supervisor};
use crate::cache::CacheAccount;
use crate::follow::{Followed, Follower};
use crate::helper::Link;
use crate::observer::Observing;
use crate::record::Recorder;
use crate::served::LeftAlone;
use crate::summary::Account;
use crate::timeline::Went;
use crate::watch::Sink as _;

/// Number of polls after the program's end, at most: all reports are there by then.
const LAST_LOOKS: usize = 1000;

/// The place of a program's record.
#[derive(Clone, Copy)]
pub(crate) struct Kept<'a> {
    pub(crate) store: &'a Store,
    pub(crate) identity: &'a Identity,
}

impl Supervisor {
    /// Takes the last reports of the program, whose file is `exe`, ends the session, and enters both in the account. Stores the record, if
    /// it belongs in the store. Returns the course of the run.
    pub(crate) fn close(
        &mut self,
        account: &mut Account,
        exe: &Path,
        kept: Option<Kept<'_>>,
        link: &Link,
    ) -> Went {
        link.doing("taking the program's last reports");
        let was_observing = self.observing();
        let looked_away = self.looked_away;
        self.take_last_reports(was_observing);
        link.doing("looking at the files that the program wrote");
        self.watch.finish(&mut self.sinks);
        self.enter_observation(account, exe, was_observing, looked_away);
        let recorder = self.recorder_of_own_rank(account);
        let is_alone = self.left_alone.is_some();
        let changed = self.end_session(account, link);
        self.keep_record(recorder, account, &changed, kept, link);
        if let Some(kept) = kept.filter(|_| self.records) {
            self.renew(kept, account, &changed, is_alone);
        }
        self.went()
    }

    fn take_last_reports(&mut self, was_observing: bool) {
        if let Some(observing) = &self.observing {
            // Processes that the program started may outlive it.
            observing.foresee(false);
        }
        self.want(Wanted::Nothing);
        // A program that is no longer observed had its last reports taken when observation ended.
        for _ in 0..if was_observing { LAST_LOOKS } else { 0 } {
            let progress = self.look(&mut Budget::new(LOOK.0, LOOK.1));
            if progress.events == 0 && !progress.more {
                break;
            }
        }
    }

    /// Enters observed and unobserved parts in the account.
    fn enter_observation(
        &mut self,
        account: &mut Account,
        exe: &Path,
        was_observing: bool,
        looked_away: bool,
    ) {
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
        let direct = self.sinks.direct_bytes;
        account.passed_cache_by(self.watch.observed().then_some(direct));
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
    }

    /// The recorder, unless MPI gave the program another rank than its launcher.
    fn recorder_of_own_rank(&mut self, account: &mut Account) -> Option<Recorder> {
        let recorder = self.sinks.recorder.take()?;
        let Some(Rank { rank, of }) = self.watch.rank() else {
            return Some(recorder);
        };
        // A single rank is recorded as a program of its own.
        if of == 1 || account.rank == Some(Rank { rank, of }) {
            return Some(recorder);
        }
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

    /// Ends the session and enters its account. Returns the recorded files that have changed.
    fn end_session(&mut self, account: &mut Account, link: &Link) -> HashSet<PathBuf> {
        let follower = self.sinks.follower.take();
        let devices = follower.as_ref().map(Follower::devices).unwrap_or_default();
        let served = self.sinks.served.take();
        let left_alone = self.left_alone.take().map(LeftAlone::finish);
        let served = served.map(|served| served.finish(account.device_bytes()));
        let guessed = follower.map(Follower::finish);
        let followed = left_alone.or(match (served, guessed) {
            (Some(served), Some(guessed)) => Some(served.and(guessed)),
            (served, guessed) => served.or(guessed),
        });
        let Some(followed) = followed else {
            return HashSet::new();
        };
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
        if let Some(why) = unmeasured {
            account.remark(why);
        }
        if let Some(trouble) = trouble {
            account.damaged(trouble);
        }
        match report {
            Some(mut report) => {
                // Each device with the profile that it was fetched by.
                report.devices.retain(|name| !devices.contains_key(name));
                report.devices.extend(devices.into_values());
                account.followed_to(report, &files);
            }
            None => {
                let why = "the prefetch engine died, or a file system does not answer it";
                account.say(format!("{why}; the program was not affected"));
            }
        }
        overtaken
    }

    /// Writes the record, if it is worth keeping. Files that have changed since the old record get their present state.
    fn keep_record(
        &self,
        recorder: Option<Recorder>,
        account: &mut Account,
        changed: &HashSet<PathBuf>,
        kept: Option<Kept<'_>>,
        link: &Link,
    ) {
        let Some(mut recorder) = recorder else {
            return;
        };
        for (id, met) in self.watch.files().all_met() {
            if changed.contains(&met.path)
                && let Some(now) = self.watch.facts(&met.path)
            {
                let written = met.written;
                recorder.file(id, &FileMeta { written, ..now });
            }
        }
        if !account.worth_recording(&recorder) {
            return recorder.discard();
        }
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

    /// Deletes the command's own record if it is useless, or enters changed files in it. A record that cannot be deleted or rewritten
    /// stays, and the next run tries again.
    fn renew(
        &self,
        Kept { store, identity }: Kept<'_>,
        account: &mut Account,
        changed: &HashSet<PathBuf>,
        is_alone: bool,
    ) {
        let own = store.place_for(identity);
        // A damaged record that nobody followed is not replaced by a new one.
        if account.outgrown() || is_alone && account.is_damaged() {
            let _ = own.remove();
        } else if !changed.is_empty() && account.goes_on_with_own() {
            // Otherwise every later run would name the changed files.
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
    }

    /// The course of the run.
    fn went(&mut self) -> Went {
        let files = self.watch.files();
        let path = |file| {
            let meta = files.known(file)?;
            Some(shown(&meta.path.to_string_lossy()).into_owned())
        };
        std::mem::take(&mut self.sinks.timeline).finish(path)
    }
}
