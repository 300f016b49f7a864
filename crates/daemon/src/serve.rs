//! The loop: events → models → predictions → the engine; questions → answers; the state saved now and then.
//!
//! Invariants: nothing in the loop waits for a device but the loading and saving of the state; whatever a step meets, the
//! loop goes on; the daemon's processor time is bounded ([`Upkeep`]).

use std::path::Path;
use std::time::Duration;

use anyhow::Result;
use foreread_backend::PageCache;
use foreread_observe::{Budget, Event, Observer};
use foreread_sys::{priority, process};
use foreread_words::plain;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::fetch::{Fetcher, MakeBackend, TICK};
use crate::mind::{Mind, Outcome, Wanted};
use crate::places::Places;
use crate::pressure::Pressure;
use crate::state::{Loaded, StateFolder};
use crate::upkeep::{Sums, Upkeep};
use crate::{Answer, Ask, Counter, IoPriority, Model, ModelStatus, Options, Status, clock};

/// How long the loop sleeps while nothing happens: it saves what was learnt.
const IDLE: Duration = Duration::from_secs(30);
/// After events the loop takes no more for this time. To be woken takes 40 to 100 µs of a virtual processor: 6 % of one at 1,000 times a
/// second, 1.5 % at 250. A lead is shortened by half of it on average.
const BREATH: Duration = Duration::from_millis(4);
/// The same while no program waits for a device: 0.3 %. The first program that waits ends the pause, if the observer reports that
/// ([`Observer::alarm_fd`]).
const REST: Duration = Duration::from_millis(20);
/// How long the loop pauses at most before it looks at an observer that cannot wake it. The pause doubles from [`REST`] on while the
/// observer tells of nothing. A bound on what an idle daemon costs; other bounds were not measured.
const SELDOM: Duration = Duration::from_millis(160);
/// Reports that one turn of the loop takes, at most, and how long taking them may last. Between turns questions are answered: whoever
/// asks does not wait for the end of a flood.
const TURN: (usize, Duration) = (4096, REST);
/// Interval at which the state is saved, in ns: a kill loses five minutes of learning.
const SAVE: u64 = 300_000_000_000;
/// A random name of the system's start, which the kernel makes anew at each.
const BOOT_ID: &str = "/proc/sys/kernel/random/boot_id";
/// Problems that are kept.
const PROBLEMS: usize = 8;

/// Watches, learns and fetches until somebody asks it to stop; `ready` is called once what was learned is loaded. The last account.
///
/// # Errors
/// When the state's folder cannot be used at all.
pub fn serve(
    options: &Options,
    observer: Box<dyn Observer>,
    counter: Counter,
    ready: impl FnOnce(),
) -> Result<Status> {
    let mut problems = Vec::new();
    if options.priority == IoPriority::Low
        && let Err(why) = priority::low_reads()
    {
        let why = plain(&why.to_string());
        problems.push(format!("hints have no lower priority: {why}"));
    }
    let machine = Machine {
        make: Box::new(|| Box::new(PageCache::new(&Default::default()).exactly())),
        places: Places::new(options.fuse),
        pressure: Pressure::at("/proc/pressure".into()),
        used: process::used,
        boot: std::fs::read(BOOT_ID).ok(),
    };
    let mut daemon = Daemon::new(options, observer.name(), machine)?;
    problems.into_iter().for_each(|one| daemon.problem(one));
    ready();
    run(daemon, observer, counter)
}

/// The machine as the loop sees it.
struct Machine {
    make: MakeBackend,
    places: Places,
    pressure: Pressure,
    /// Processor time that the daemon has used, in ns.
    used: fn() -> u64,
    /// Which start of the system this is, as the kernel names it; `None` where it does not.
    boot: Option<Vec<u8>>,
}

fn run(
    mut daemon: Daemon,
    mut observer: Box<dyn Observer>,
    mut counter: Counter,
) -> Result<Status> {
    let mut stop = false;
    let mut pause = Duration::ZERO;
    let (mut more, mut told) = (false, false);
    while !stop {
        if !more {
            wait(observer.as_ref(), &counter, daemon.patience(), pause);
            told = false;
        }
        let mut budget = Budget::new(TURN.0, TURN.1);
        let taken = &mut daemon.taken;
        more = observer
            .poll(&mut budget, &mut |event| taken.push(event))
            .more;
        told |= !daemon.taken.is_empty();
        daemon.take();
        pause = match told {
            true => Duration::ZERO,
            false => (2 * pause).clamp(REST, SELDOM),
        };
        counter.answer(|ask| match ask {
            Ask::Status => Answer::Status(Box::new(daemon.status(observer.as_ref()))),
            Ask::Predict { path, uid } => Answer::Predicted(daemon.mind.after(&path, uid)),
            Ask::Environment => Answer::Environment(observer.environment()),
            Ask::Stop => {
                if !stop {
                    daemon.end();
                }
                stop = true;
                Answer::Stopping(daemon.unsaved.clone())
            }
        });
        if !stop {
            daemon.keep();
            if more {
                continue;
            }
            let is_cold = daemon.mind.is_cold(clock::now());
            rest(observer.as_ref(), if is_cold { BREATH } else { REST });
        }
    }
    Ok(daemon.status(observer.as_ref()))
}

/// Waits for an event or a question; no longer than `pause` where the observer cannot tell of events.
fn wait(observer: &dyn Observer, counter: &Counter, patience: Duration, pause: Duration) {
    let mut fds = vec![PollFd::from_borrowed_fd(counter.wait_fd(), PollFlags::IN)];
    let patience = match observer.wake_fd() {
        Some(fd) => {
            fds.push(PollFd::from_borrowed_fd(fd, PollFlags::IN));
            patience
        }
        None => patience.min(pause),
    };
    let patience = Timespec::try_from(patience).ok();
    // A signal ends it early, and no more.
    let _ = poll(&mut fds, patience.as_ref());
}

/// Takes nothing for so long, or until a process is about to wait for a device.
fn rest(observer: &dyn Observer, time: Duration) {
    let Some(fd) = observer.alarm_fd() else {
        return std::thread::sleep(time);
    };
    let time = Timespec::try_from(time).ok();
    // A signal ends it early, and no more.
    let _ = poll(
        &mut [PollFd::from_borrowed_fd(fd, PollFlags::IN)],
        time.as_ref(),
    );
}

/// State of the loop.
struct Daemon {
    mind: Mind,
    state: StateFolder,
    fetcher: Fetcher,
    places: Places,
    pressure: Pressure,
    upkeep: Upkeep,
    used: fn() -> u64,
    model: Model,
    observer: &'static str,
    since: u64,
    /// Events that were taken from the observer, and what came of one.
    taken: Vec<Event>,
    outcomes: Vec<Outcome>,
    problems: Vec<String>,
    /// When the state was saved last: in the loop's clock, and for people; and after how many events.
    saved: (u64, u64, u64),
    /// Why the last attempt to save it failed.
    unsaved: Option<String>,
}

impl Daemon {
    fn new(options: &Options, observer: &'static str, machine: Machine) -> Result<Self> {
        let Loaded {
            state,
            symbols,
            files,
            proofs,
            boot,
            mut problems,
        } = StateFolder::load(&options.state)?;
        let news = machine.boot.filter(|now| *now != boot);
        if let Some(now) = &news
            && let Err(why) = state.save_boot(now)
        {
            let why = plain(&format!("{why:#}"));
            problems.push(format!("the system's start is not remembered: {why}"));
        }
        // A new state has no name of a start: the system may have started long before this daemon.
        let has_started = news.is_some() && !boot.is_empty();
        let now = clock::now();
        let model = state.model(options.model, options.partitions);
        let mut mind = Mind::new(model, symbols, files, options.threshold);
        mind.accounts.proofs = proofs;
        let mut daemon = Self {
            mind,
            state,
            fetcher: Fetcher::new(machine.make, options.budget),
            places: machine.places,
            pressure: machine.pressure,
            upkeep: Upkeep::new(now, (machine.used)()),
            used: machine.used,
            model: options.model,
            observer,
            since: clock::seconds(),
            taken: Vec::new(),
            outcomes: Vec::new(),
            problems,
            saved: (now, 0, 0),
            unsaved: None,
        };
        if has_started {
            daemon.system_started(now);
        }
        Ok(daemon)
    }

    /// The system has started since there was a daemon last.
    fn system_started(&mut self, now: u64) {
        let mut outcomes = Vec::new();
        self.mind.system_started(now, &mut outcomes);
        outcomes.into_iter().for_each(|one| self.act(one));
        self.fetcher.wake();
    }

    /// How long the loop may sleep.
    fn patience(&self) -> Duration {
        if self.fetcher.runs() { TICK } else { IDLE }
    }

    /// Takes what has happened.
    fn take(&mut self) {
        let now = clock::now();
        if self.fetcher.is_busy() {
            self.mind.waits(now);
        } else {
            self.mind.files.done(now);
        }
        let sums = Sums {
            used: (self.used)(),
            lost: self.pressure.lost(now),
            spared: self.fetcher.spared(),
        };
        let means = self.upkeep.settle(now, sums);
        for event in std::mem::take(&mut self.taken) {
            self.mind.happened(event, means, &mut self.outcomes);
            let mut outcomes = std::mem::take(&mut self.outcomes);
            for outcome in outcomes.drain(..) {
                self.act(outcome);
            }
            self.outcomes = outcomes;
        }
        self.fetcher.settle(clock::now());
        self.fetcher.wake();
    }

    fn act(&mut self, outcome: Outcome) {
        match outcome {
            Outcome::Used(symbol, at) => self.fetcher.opened(symbol, at, clock::now()),
            Outcome::Fetched(device, bytes, is_ours) => {
                let now = clock::now();
                self.pressure.fetched(device, bytes, is_ours, now);
                self.fetcher.waited(now);
            }
            Outcome::Wanted(wanted) => self.want(&wanted),
            Outcome::GivenUp(symbol) => self.fetcher.give_up(symbol),
        }
    }

    /// A file is predicted: has it fetched, if it may be.
    fn want(&mut self, wanted: &Wanted) {
        let now = clock::now();
        let symbol = wanted.symbol;
        let device = self.mind.files.get(symbol).map(|facts| facts.device);
        if self.pressure.reason(device, now).is_some() {
            return;
        }
        let Some(path) = self.mind.symbols.path(symbol) else {
            return;
        };
        let Some((facts, pages)) = self.mind.files.due(symbol, now) else {
            return;
        };
        if !self.places.allow(path, facts.device, now) {
            self.mind.ignored += 1;
            return;
        }
        let accounts = &mut self.mind.accounts;
        let file = (symbol, path, facts);
        let (key, likelihood) = (&wanted.key, wanted.likelihood);
        let asked = self
            .fetcher
            .want(key, file, pages, likelihood, accounts, now);
        if !asked {
            self.mind.files.let_go(symbol);
        }
    }

    /// Ends a session that is over, and saves the state if it is time.
    fn keep(&mut self) {
        if let Some(problem) = self.places.problem().map(str::to_owned) {
            self.problem(problem);
        }
        let now = clock::now();
        self.fetcher.rest(&mut self.mind.accounts, now);
        let (saved, _, events) = self.saved;
        if now.saturating_sub(saved) >= SAVE && self.mind.events > events {
            self.save(now);
        }
    }

    fn save(&mut self, now: u64) {
        self.mind.flush();
        let before = self.saved.1;
        let Mind {
            symbols,
            files,
            accounts,
            ..
        } = &self.mind;
        let saved = self.state.save(symbols, files, &accounts.proofs);
        self.unsaved = saved.err().map(|why| plain(&format!("{why:#}")));
        match &self.unsaved {
            None => self.saved = (now, clock::seconds(), self.mind.events),
            Some(why) => {
                // Until there is room again.
                self.saved = (now, before, self.saved.2);
                self.problem(format!("the models are not saved: {why}"));
            }
        }
    }

    fn problem(&mut self, problem: String) {
        if !self.problems.contains(&problem) {
            if self.problems.len() == PROBLEMS {
                self.problems.remove(0);
            }
            self.problems.push(problem);
        }
    }

    fn end(&mut self) {
        self.fetcher.end(&mut self.mind.accounts);
        self.save(clock::now());
    }

    fn status(&mut self, observer: &dyn Observer) -> Status {
        let running = self.fetcher.running();
        let all = &self.mind.accounts.all;
        let mut bytes = all.bytes;
        running.iter().for_each(|(_, one)| bytes += *one);
        let lost = observer.lost().into_iter();
        let kind = match self.model {
            Model::LastSuccessor => "last successor",
            Model::Pcm => "PCM",
            Model::Epcm => "EPCM",
            Model::PublishedEpcm => "EPCM as published",
        };
        Status {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            pid: std::process::id(),
            since: self.since,
            observer: self.observer.to_owned(),
            events: self.mind.events,
            lost: lost.map(|(name, count)| (name.to_owned(), count)).collect(),
            ignored: self.mind.ignored,
            model: ModelStatus {
                kind: kind.to_owned(),
                symbols: self.mind.symbols.len() as u64,
                partitions: self.state.partitions() as u64,
                bytes: self.mind.bytes(),
                saved: self.saved.1,
                unsaved: self.unsaved.clone(),
            },
            predictions: all.predictions,
            lead: all.leads.told(),
            bytes,
            pressure: self.pressure.reason(None, clock::now()),
            problems: self.problems.clone(),
            processor_ns: (self.used)(),
            memory: resident(Path::new("/proc/self/statm")),
            programs: self.mind.accounts.told(&running),
        }
    }
}

/// Bytes of a process that are in memory, of its `statm`; 0 where that is hidden.
fn resident(statm: &Path) -> u64 {
    let text = std::fs::read_to_string(statm).unwrap_or_default();
    let pages = text.split(' ').nth(1).and_then(|pages| pages.parse().ok());
    pages.map_or(0, |pages: u64| pages * foreread_sys::page_size())
}

#[cfg(test)]
mod tests;
