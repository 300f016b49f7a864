//! The runner of the whole-program tests: it selects the tests of a ring, decides which of them run concurrently, and prints a summary.
//!
//! Tests run concurrently, because most of them wait for a disk or for a sleeping program. A test that needs the page cache or the
//! processors for itself is declared [`When::alone`]: it holds a lock exclusively that all others share. A test with a failed
//! [`check!`](crate::check) is repeated up to twice, alone, and counted as flaky.
//!
//! Invariant: a test that cannot run here is reported as ignored, with the reason in its name, and never as passed.
//!
//! Data flow: tables of [`Test`] → [`Suite::add`] → [`Suite::run`] → libtest-mimic → summary, log of the tests.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};
use std::time::{Duration, Instant};

use foreread_steady::{attempt, flaky, log};
use libtest_mimic::{Arguments, Trial};

use crate::Need;

/// A test: its name, when it runs, its needs, and its body.
pub type Test = (&'static str, When, &'static [Need], fn());

/// The ring of a test, and the tests that it may run beside.
#[derive(Clone, Copy, Debug)]
pub struct When {
    quick: bool,
    beside: Beside,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Beside {
    Any,
    /// All except tests of the same kind: programs that wait busily or watch the whole machine.
    OtherKinds,
    Nothing,
}

/// A test in the ring of `make test`.
pub const QUICK: When = When {
    quick: true,
    beside: Beside::Any,
};

/// A test in the ring of `make test-all`.
pub const ALL: When = When {
    quick: false,
    beside: Beside::Any,
};

impl When {
    /// As `self`, with the page cache and the processors for the test alone.
    pub const fn alone(self) -> Self {
        Self {
            beside: Beside::Nothing,
            ..self
        }
    }

    /// As `self`, but never concurrently with another such test.
    pub const fn one_at_a_time(self) -> Self {
        Self {
            beside: Beside::OtherKinds,
            ..self
        }
    }

    /// As `self`, in the ring of `make test-all`.
    pub const fn later(self) -> Self {
        Self {
            quick: false,
            ..self
        }
    }
}

/// The variable that selects the ring: `quick` (the default), `rest`, or `every`. A filter on the command line applies to every ring.
const RING: &str = "FOREREAD_RING";

/// Held shared by each test, exclusively by one that runs alone.
static MACHINE: RwLock<()> = RwLock::new(());
/// Held by a test that may not run concurrently with another of its kind.
static KIND: Mutex<()> = Mutex::new(());

#[derive(Debug, Default)]
struct Summary {
    times: Vec<(Duration, String)>,
    flaky: Vec<String>,
    /// Number of tests for each reason why they cannot run here.
    skipped: BTreeMap<String, usize>,
    /// Number of unfinished tests.
    left: usize,
}

/// The tests that a program runs.
pub struct Suite {
    arguments: Arguments,
    rings: [bool; 2],
    trials: Vec<(Beside, Trial)>,
    missing: HashMap<Need, Option<String>>,
    summary: Arc<Mutex<Summary>>,
}

impl std::fmt::Debug for Suite {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Suite").finish_non_exhaustive()
    }
}

impl Suite {
    /// A suite with the options of the command line. Ends the process if the environment names an unknown ring.
    pub fn from_args() -> Self {
        let arguments = Arguments::from_args();
        let ring = std::env::var(RING).unwrap_or_else(|_| "quick".to_owned());
        let rings = match ring.as_str() {
            _ if arguments.filter.is_some() => [true, true],
            "quick" => [true, false],
            "rest" => [false, true],
            "every" => [true, true],
            other => {
                eprintln!("{RING}: {other:?} is none of quick, rest, every");
                std::process::exit(2);
            }
        };
        Self {
            arguments,
            rings,
            trials: Vec::new(),
            missing: HashMap::new(),
            summary: Arc::default(),
        }
    }

    /// Adds the tests of a group, as `GROUP::NAME`.
    pub fn add(&mut self, group: &str, tests: &[Test]) {
        for &(name, when, needs, test) in tests {
            self.add_one(format!("{group}::{name}"), when, needs, || None, test);
        }
    }

    /// Adds one test. `missing` returns a further unmet requirement besides `needs`; it is called only if the test is in the ring.
    pub fn add_one(
        &mut self,
        name: String,
        when: When,
        needs: &[Need],
        missing: impl FnOnce() -> Option<String>,
        test: impl Fn() + Send + 'static,
    ) {
        if !self.rings[usize::from(!when.quick)] || !self.is_asked_for(&name) {
            return;
        }
        let mut known = |&need: &Need| {
            let known = self.missing.entry(need);
            known.or_insert_with(|| need.missing()).clone()
        };
        let mut counts = self.summary.lock().unwrap_or_else(PoisonError::into_inner);
        let trial = match needs.iter().find_map(&mut known).or_else(missing) {
            None => {
                counts.left += 1;
                let summary = Arc::clone(&self.summary);
                Trial::test(name.clone(), move || {
                    run(&name, when.beside, &summary, &test);
                    Ok(())
                })
            }
            Some(missing) => {
                log(&format!("skipped {name}: {missing}"));
                *counts.skipped.entry(missing.clone()).or_default() += 1;
                let name = format!("{name} (cannot run here: {missing})");
                Trial::test(name, || Ok(())).with_ignored_flag(true)
            }
        };
        self.trials.push((when.beside, trial));
    }

    fn is_asked_for(&self, name: &str) -> bool {
        match &self.arguments.filter {
            Some(filter) if self.arguments.exact => name == filter,
            Some(filter) => name.contains(filter.as_str()),
            None => true,
        }
    }

    /// Runs the tests, prints a summary and the result, and ends the process.
    pub fn run(mut self) -> ! {
        // Most tests wait for a disk, a pause or a sleeping program, so more of them run than there are processors.
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        self.arguments.test_threads.get_or_insert(2 * processors);
        let trials = in_turn(self.trials);
        libtest_mimic::run(&self.arguments, trials).exit()
    }
}

/// The order in which tests are started. Tests that run one at a time are distributed among the others, so that no thread waits for such
/// a test's turn; tests that run alone come last.
fn in_turn(trials: Vec<(Beside, Trial)>) -> Vec<Trial> {
    let (mut any, mut turns, mut alone) = (Vec::new(), Vec::new(), Vec::new());
    for (beside, trial) in trials {
        match beside {
            Beside::Any => any.push(trial),
            Beside::OtherKinds => turns.push(trial),
            Beside::Nothing => alone.push(trial),
        }
    }
    let each = any.len().div_ceil(turns.len().max(1)).max(1);
    let mut any = any.into_iter();
    let mut all = Vec::new();
    for trial in turns {
        all.push(trial);
        all.extend(any.by_ref().take(each));
    }
    all.extend(any);
    all.extend(alone);
    all
}

/// How many times a test with a failed check is repeated, alone. More than once, because other processes may spoil a repeat as well.
const REPEATS: usize = 2;

/// Runs a test; repeats it alone if a check failed in it.
fn run(name: &str, beside: Beside, summary: &Mutex<Summary>, test: &impl Fn()) {
    let mut turn = Turn::take(name, beside, summary);
    let first = attempt(test);
    if let Err(why) = first {
        flaky(name, &why);
        turn.is_flaky = true;
        turn.again_alone();
        let mut failed = String::new();
        for _ in 0..REPEATS {
            match attempt(test) {
                Ok(()) => return,
                Err(why) => failed = why,
            }
        }
        panic!("alone too: {failed}");
    }
}

/// The locks and times of a running test. Its end, by success or by a panic, is logged.
struct Turn<'a> {
    name: &'a str,
    summary: &'a Mutex<Summary>,
    locks: Locks,
    began: Instant,
    before: Duration,
    is_flaky: bool,
}

#[derive(Default)]
struct Locks {
    _alone: Option<RwLockWriteGuard<'static, ()>>,
    _shared: Option<RwLockReadGuard<'static, ()>>,
    _turn: Option<MutexGuard<'static, ()>>,
}

impl Locks {
    fn take(beside: Beside) -> Self {
        let mut locks = Self::default();
        match beside {
            Beside::Nothing => {
                locks._alone = Some(MACHINE.write().unwrap_or_else(PoisonError::into_inner));
            }
            Beside::Any | Beside::OtherKinds => {
                locks._turn = (beside == Beside::OtherKinds)
                    .then(|| KIND.lock().unwrap_or_else(PoisonError::into_inner));
                locks._shared = Some(MACHINE.read().unwrap_or_else(PoisonError::into_inner));
            }
        }
        locks
    }
}

impl<'a> Turn<'a> {
    fn take(name: &'a str, beside: Beside, summary: &'a Mutex<Summary>) -> Self {
        Self {
            name,
            summary,
            locks: Locks::take(beside),
            began: Instant::now(),
            before: Duration::ZERO,
            is_flaky: false,
        }
    }

    fn again_alone(&mut self) {
        self.before = self.began.elapsed();
        self.locks = Locks::default();
        self.locks = Locks::take(Beside::Nothing);
        self.began = Instant::now();
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let took = self.before + self.began.elapsed();
        log(&format!("time {:.2} {}", took.as_secs_f64(), self.name));
        let mut summary = self.summary.lock().unwrap_or_else(PoisonError::into_inner);
        summary.times.push((took, self.name.to_owned()));
        if self.is_flaky {
            summary.flaky.push(self.name.to_owned());
        }
        summary.left -= 1;
        // The summary comes before libtest-mimic's last line, which programs that read logs look for at the end.
        if summary.left == 0 {
            summary.print();
        }
    }
}

impl Summary {
    fn print(&mut self) {
        const SLOWEST: usize = 10;
        self.times.sort_by(|a, b| b.cmp(a));
        let mut lines = vec![String::new()];
        if self.times.len() > SLOWEST {
            lines.push(format!("the {SLOWEST} slowest:"));
            for (took, name) in &self.times[..SLOWEST] {
                lines.push(format!("{:>7.1} s  {name}", took.as_secs_f64()));
            }
        }
        for (why, count) in &self.skipped {
            lines.push(format!("skipped: {count} ({why})"));
        }
        lines.push(format!("repeated (flaky): {}", self.flaky.len()));
        lines.extend(self.flaky.iter().map(|name| format!("  {name}")));
        println!("{}\n", lines.join("\n"));
    }
}
