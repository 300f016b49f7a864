//! Watches a program to its end, in the helper: takes reports and passes them to the recorder and the session.
//!
//! Data flow: [`Observing`] → [`Watch`] → [`Sinks`]; at the end everything → the account ([`close`]).

mod close;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use foreread_backend::Collective;
use foreread_observe::{Budget, Progress, Wanted};
use foreread_ring::Board;
use foreread_sys::processor::Aside;

pub(super) use self::close::Kept;
use super::follow::{Follower, Guesses};
use super::helper::{Finished, Link};
use super::observer::Observing;
use super::pace::{Care, Pace};
use super::record::part::Limits;
use super::served::{LeftAlone, Served};
use super::sinks::Sinks;
use super::start_up::StartUp;
use super::watch::{Sink as _, Watch};

/// Budget of a poll, in reports and time: the contents of four threads' full rings, and the time in which one ring fills at a million reads
/// a second. The next poll follows at once if reports are left.
const LOOK: (usize, Duration) = (4 << 14, Duration::from_millis(16));

/// Watches the program, in the helper.
pub(super) struct Supervisor {
    pub(super) observing: Option<Observing>,
    pub(super) watch: Watch,
    pub(super) sinks: Sinks,
    /// True if the store may be changed.
    pub(super) records: bool,
    /// True if this run gets a record of its own, even if another is followed.
    pub(super) replaces: bool,
    /// The prepared session of guesses, until it is started.
    pub(super) guesses: Option<Guesses>,
    /// The rank's part of the collective cache, if the program is a rank.
    pub(super) collective: Option<Collective>,
    /// Limits of the record.
    pub(super) limits: Limits,
    /// The plan, if the program was left alone because it was in memory.
    pub(super) left_alone: Option<LeftAlone>,
    /// Why it was not.
    pub(super) unguessed: Option<anyhow::Error>,
    pub(super) aside: Aside,
    pub(super) pace: Pace,
    /// True if the program was left alone at any time.
    pub(super) rested: bool,
    pub(super) started: Instant,
    /// True if the program was left alone for a while.
    pub(super) looked_away: bool,
    /// Through which `foreread top` is answered.
    pub(super) board: Option<Board>,
    /// The start-up of a service, after which watching ends.
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
                // Its reads from now on are not observed.
                self.sinks.look_away();
                return start_up.finished(start_up.took());
            }
            let care = self.care();
            self.pace.looked(seen, care);
        }
    }

    /// Answers `foreread top`, and once more before observation ends: nobody answers later.
    fn answer(&self, observing: bool) {
        if let Some(board) = &self.board
            && (!observing || board.is_asked())
        {
            let live = self.sinks.live(self.started.elapsed(), observing);
            board.answer(live.words());
        }
    }

    /// foreread's present work for the program.
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

    /// Takes the reports since the last poll, within the budget.
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

    /// True if the command gets a record of its own, even if another is followed.
    fn is_recorded(&self) -> bool {
        let sinks = &self.sinks;
        let is_damaged = sinks.served.as_ref().is_some_and(Served::is_damaged);
        self.replaces || sinks.recorder.is_some() && is_damaged
    }

    /// Ends watching, because nothing is left to fetch. A run that gets a record of its own is watched on.
    fn let_go(&mut self) {
        if self.is_recorded() {
            return;
        }
        // An unfinished record would pass for a whole one.
        if let Some(recorder) = self.sinks.recorder.take() {
            recorder.discard();
        }
        self.rested = true;
        self.look_away();
    }

    /// Starts a session for an unknown program, now that a read has waited. Before that there was nothing to gain.
    fn guess(&mut self, guesses: Guesses) {
        let recorded = self.sinks.served.as_ref().and_then(Served::rewritten);
        let recorded = recorded.map(Arc::clone);
        match Follower::start(guesses, recorded, self.collective.clone(), self.started) {
            Ok(mut follower) => {
                // Files of one role are known by their order.
                let met: BTreeMap<_, _> = self.watch.files().all_met().collect();
                for (id, meta) in met {
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
}

#[cfg(test)]
mod tests;
