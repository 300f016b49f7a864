//! Tests that pass beside other processes: which failed checks count, and which rounds are repeated.
//!
//! How much foreread fetched in time, and what is in memory, can be shown only while nobody else empties the page
//! cache or keeps the processors busy. Such a check is written [`check!`], inside [`rounds`]. When it fails, the
//! kernel's own counters say whether somebody disturbed the round. If so, the round is repeated.
//!
//! Invariant: a round fails for good when anything but a [`check!`] fails in it, when it is the second that nobody disturbed, or when it
//! is the last of [`ROUNDS`]. So what a program is given, what it prints and how it ends is never tried twice, and a
//! behaviour that is broken fails in every round.
//!
//! Data flow: [`rounds`] → [`Watch::begin`] → the test → [`check!`] → [`Watch::disturbed`] → once more, or a panic.

#![forbid(unsafe_code)]

use std::any::Any;
use std::fs;
use std::panic::{AssertUnwindSafe, Location, catch_unwind, resume_unwind};

/// Rounds at most. With 12, three runs of the 123 tests of tests/run lost none to others, beside a load of 20 on two
/// processors and a page cache emptied every 0.7 s.
pub const ROUNDS: u32 = 12;

/// The share of all processors' time that others may take before they count as a disturbance. The kernel counts in ticks
/// of 10 ms, so that a round of 0.1 s on two processors is told to one in twenty; a busy loop takes half.
const OTHERS: f64 = 0.05;

/// Rounds that nobody was seen to disturb after which a check has failed. What the kernel does not count disturbs as well:
/// a host that gives the processors to others, and a device that is slow for once. Of 176 tests of tests/run, one failed
/// in such a round in three of four runs, each time another; each passed when it was run again.
const UNDISTURBED: u32 = 2;

/// A check that failed and that other processes may be the reason for.
struct Unsettled(String);

/// Checks what other processes can spoil by emptying the page cache or by keeping the processors busy; to be used
/// inside [`rounds`]. What nobody else can spoil is for `assert!`.
#[macro_export]
macro_rules! check {
    ($condition:expr $(,)?) => {
        $crate::check($condition, || stringify!($condition).to_owned())
    };
    ($condition:expr, $($said:tt)+) => {
        $crate::check($condition, || format!($($said)+))
    };
}

/// What [`check!`] does.
#[doc(hidden)]
#[track_caller]
pub fn check(condition: bool, said: impl FnOnce() -> String) {
    if !condition {
        let place = Location::caller();
        // Not a panic: a round that is repeated prints nothing.
        resume_unwind(Box::new(Unsettled(format!("{place}: {}", said()))));
    }
}

/// Runs `round` until it succeeds. A round with a failed [`check!`] is repeated if other processes disturbed it.
///
/// # Panics
///
/// When the last round fails, or the second that nobody disturbed, or when anything but a [`check!`] fails.
#[track_caller]
pub fn rounds<T>(round: impl FnMut() -> T) -> T {
    rounds_while(Watch::begin, Watch::disturbed, round)
}

fn rounds_while<T, W>(
    begin: impl Fn() -> W,
    disturbed: impl Fn(&W) -> Option<String>,
    mut round: impl FnMut() -> T,
) -> T {
    let (mut left, mut undisturbed) = (ROUNDS, 0);
    loop {
        left -= 1;
        let watch = begin();
        let failed = match catch_unwind(AssertUnwindSafe(&mut round)) {
            Ok(done) => return done,
            Err(failed) => said(failed),
        };
        let why = disturbed(&watch);
        undisturbed += u32::from(why.is_none());
        if left == 0 || undisturbed >= UNDISTURBED {
            let why = why.unwrap_or_else(|| "nobody else disturbed it".to_owned());
            panic!("{failed}\n(round {} of {ROUNDS}: {why})", ROUNDS - left);
        }
    }
}

/// What a failed check says; any other failure goes on its way.
fn said(failed: Box<dyn Any + Send>) -> String {
    match failed.downcast::<Unsettled>() {
        Ok(unsettled) => unsettled.0,
        Err(other) => resume_unwind(other),
    }
}

/// What the kernel had counted when a round began.
#[derive(Debug)]
pub struct Watch {
    drops: u64,
    ticks: Ticks,
}

/// Processor time since the machine's start, in the kernel's ticks, of all processors together.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Ticks {
    /// All of it, idle or not.
    all: u64,
    /// In use, or taken by other guests of the same host.
    busy: u64,
    /// Used by this process and by the children that it has waited for.
    ours: u64,
}

impl Watch {
    /// Looks at the counters.
    pub fn begin() -> Self {
        Self {
            drops: drops(),
            ticks: Ticks::now(),
        }
    }

    /// What other processes did since, in words; `None` if they did nothing that counts.
    pub fn disturbed(&self) -> Option<String> {
        let drops = drops() - self.drops;
        let others = self.ticks.others(Ticks::now());
        let mut said = Vec::new();
        if drops > 0 {
            said.push(format!("the page cache was emptied, times: {drops}"));
        }
        if others > OTHERS {
            let percent = others * 100.0;
            said.push(format!(
                "others took {percent:.0} % of the processors' time"
            ));
        }
        (!said.is_empty()).then(|| said.join("; "))
    }
}

impl Ticks {
    fn now() -> Self {
        let of = |path: &str| fs::read_to_string(path).unwrap_or_default();
        Self::parse(&of("/proc/stat"), &of("/proc/self/stat"))
    }

    /// From the texts of `/proc/stat` and `/proc/self/stat`; zeros where a text is not as expected.
    fn parse(machine: &str, process: &str) -> Self {
        let number = |word: &str| word.parse::<u64>().unwrap_or(0);
        // user nice system idle iowait irq softirq steal; guests' time is in user and nice already.
        let columns = machine.lines().next().unwrap_or("").split_whitespace();
        let columns: Vec<u64> = columns.skip(1).take(8).map(number).collect();
        let all: u64 = columns.iter().sum();
        let idle: u64 = columns.iter().skip(3).take(2).sum();
        // The name may hold anything; of what follows it, columns 11 to 14 are utime, stime, cutime and cstime.
        let rest = process.rsplit_once(')').map_or("", |(_, rest)| rest);
        let ours = rest.split_whitespace().skip(11).take(4).map(number).sum();
        Self {
            all,
            busy: all - idle,
            ours,
        }
    }

    /// The share of all processors' time until `later` that was used by others.
    fn others(self, later: Self) -> f64 {
        let all = later.all.saturating_sub(self.all);
        let ours = later.ours.saturating_sub(self.ours);
        let busy = later.busy.saturating_sub(self.busy);
        busy.saturating_sub(ours) as f64 / all.max(1) as f64
    }
}

/// How often the page cache has been emptied by hand since the machine's start.
fn drops() -> u64 {
    let counters = fs::read_to_string("/proc/vmstat").unwrap_or_default();
    let count = counters
        .lines()
        .find_map(|line| line.strip_prefix("drop_pagecache "));
    count.and_then(|count| count.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    fn failure(round: impl FnMut(), disturbed: Option<&str>) -> String {
        let disturbed = |(): &()| disturbed.map(str::to_owned);
        let failed = catch_unwind(AssertUnwindSafe(|| rounds_while(|| (), disturbed, round)));
        let failed = failed.expect_err("it fails");
        let text = failed.downcast_ref::<String>().cloned();
        text.unwrap_or_else(|| failed.downcast_ref::<&str>().expect("a text").to_string())
    }

    #[test]
    fn a_disturbed_round_is_repeated_until_it_succeeds() {
        let count = Cell::new(0);
        let round = || {
            count.set(count.get() + 1);
            check!(count.get() == 3, "round {}", count.get());
            "done"
        };
        let done = rounds_while(|| (), |()| Some("so it was".into()), round);
        assert_eq!((done, count.get()), ("done", 3));
    }

    #[test]
    fn a_behaviour_that_is_broken_fails_in_the_last_round() {
        let count = Cell::new(0);
        let broken = || {
            count.set(count.get() + 1);
            check!(1 + 1 == 3);
        };
        let said = failure(broken, Some("busy"));
        assert_eq!(count.get(), ROUNDS);
        assert!(
            said.contains("1 + 1 == 3") && said.contains("busy"),
            "{said}"
        );
    }

    #[test]
    fn what_nobody_disturbed_is_tried_once_more() {
        let count = Cell::new(0);
        let broken = || {
            count.set(count.get() + 1);
            check!(false, "never");
        };
        assert!(failure(broken, None).contains("nobody else"));
        assert_eq!(count.get(), UNDISTURBED);
    }

    #[test]
    fn an_assertion_is_not_tried_again_however_disturbed() {
        let count = Cell::new(0);
        let harm = || {
            count.set(count.get() + 1);
            assert_eq!(count.get(), 0, "another output");
        };
        assert!(failure(harm, Some("busy")).contains("another output"));
        assert_eq!(count.get(), 1);
    }

    #[test]
    fn others_are_told_from_this_process_and_its_children() {
        let before = Ticks::parse(
            "cpu  100 10 50 800 40 0 0 0 0 0\ncpu0 1 2 3\n",
            "7 (a b) c) S 1 7 7 0 -1 0 0 0 0 0 10 5 3 2 20 0 1 0",
        );
        let expected = Ticks {
            all: 1000,
            busy: 160,
            ours: 20,
        };
        assert_eq!(before, expected);
        let later = Ticks::parse(
            "cpu  150 10 60 830 40 0 0 10 0 0\n",
            "7 (a) S 1 7 7 0 -1 0 0 0 0 0 30 5 13 2 20 0 1 0",
        );
        // 70 of 100 ticks were busy, 30 of them ours.
        assert!((before.others(later) - 0.4).abs() < 1e-9);
        assert_eq!(Ticks::parse("", ""), Ticks::default());
    }

    #[test]
    fn this_process_at_work_is_no_disturbance() {
        let before = Ticks::now();
        let mut sum = 0_u64;
        while Ticks::now().ours < before.ours + 20 {
            sum = (0..100_000).fold(sum, |sum, n| sum.wrapping_mul(31) ^ n);
        }
        assert!(sum > 0);
        let after = Ticks::now();
        // Whatever others do meanwhile, what this process did is not theirs. The kernel samples the two counters on its own
        // ticks: of 20, up to 2 were in one and not in the other.
        let theirs = before.others(after) * (after.all - before.all) as f64;
        let busy = (after.busy - before.busy) as f64;
        assert!(busy - theirs >= 15.0, "{theirs} of {busy}");
    }
}
