//! Checks that other processes can spoil, the one repeat that such a check gets, and the list of repeats.
//!
//! The contents of the page cache, and whether foreread was in time, depend on other processes. Such a check is written [`check!`],
//! inside [`rounds`]. When it fails, the round is repeated once, and the repeat is reported as flaky: printed, and written to the tests'
//! log, which `make test` summarises.
//!
//! Invariant: there are at most two rounds, and the second only after a failed [`check!`]. Any other failure (output, exit status,
//! ledger) is final in the first round.
//!
//! Data flow: [`rounds`] → [`attempt`] → [`check!`] → [`flaky`] → [`attempt`] → a panic.

#![forbid(unsafe_code)]

use std::any::Any;
use std::fs::OpenOptions;
use std::io::Write;
use std::panic::{AssertUnwindSafe, Location, catch_unwind, resume_unwind};

/// The variable that names the tests' log, which has a line for each test's time, each repeat and each skipped test.
pub const LOG: &str = "FOREREAD_TEST_LOG";

/// A failed check that other processes may have caused.
struct Unsettled(String);

/// A check that other processes can spoil by emptying the page cache or by keeping the processors busy; for use inside [`rounds`]. Use
/// `assert!` for all other checks.
#[macro_export]
macro_rules! check {
    ($condition:expr $(,)?) => {
        $crate::check($condition, || stringify!($condition).to_owned())
    };
    ($condition:expr, $($said:tt)+) => {
        $crate::check($condition, || format!($($said)+))
    };
}

/// The function behind [`check!`].
#[doc(hidden)]
#[track_caller]
pub fn check(condition: bool, said: impl FnOnce() -> String) {
    if !condition {
        let place = Location::caller();
        // Not a panic: a repeated round prints nothing of its own.
        resume_unwind(Box::new(Unsettled(format!("{place}: {}", said()))));
    }
}

/// Runs `round` once.
///
/// # Errors
///
/// The message of the [`check!`] that failed.
///
/// # Panics
///
/// When anything but a [`check!`] fails.
pub fn attempt<T>(round: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(round)).map_err(message)
}

/// Runs `round`, and repeats it once if a [`check!`] failed in it.
///
/// # Panics
///
/// When a [`check!`] fails in the second round too, or when anything else fails.
#[track_caller]
pub fn rounds<T>(round: impl FnMut() -> T) -> T {
    let place = Location::caller();
    rounds_reported(round, |why| {
        let thread = std::thread::current();
        flaky(thread.name().unwrap_or(place.file()), why);
    })
}

fn rounds_reported<T>(mut round: impl FnMut() -> T, report: impl FnOnce(&str)) -> T {
    attempt(&mut round).unwrap_or_else(|why| {
        report(&why);
        attempt(&mut round).unwrap_or_else(|why| panic!("in the second round too: {why}"))
    })
}

/// Reports that a test is repeated, with the reason.
pub fn flaky(test: &str, why: &str) {
    // A failed check prints its whole run; the beginning of the first line is enough.
    let line = why.lines().next().unwrap_or("");
    let short: String = line.chars().take(300).collect();
    eprintln!("flaky: {test}: {short}");
    log(&format!("flaky {test}: {short}"));
}

/// Adds a line to the tests' log, if there is one.
pub fn log(line: &str) {
    let Some(path) = std::env::var_os(LOG) else {
        return;
    };
    // One write, because tests of several processes append to the file.
    let line = format!("{line}\n");
    let file = OpenOptions::new().create(true).append(true).open(path);
    if let Err(why) = file.and_then(|mut file| file.write_all(line.as_bytes())) {
        eprintln!("{LOG}: {why}");
    }
}

/// The message of a failed check; any other panic is resumed.
fn message(failed: Box<dyn Any + Send>) -> String {
    match failed.downcast::<Unsettled>() {
        Ok(unsettled) => unsettled.0,
        Err(other) => resume_unwind(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failure(round: impl FnMut()) -> String {
        let failed = catch_unwind(AssertUnwindSafe(|| rounds_reported(round, |_| ())))
            .expect_err("it fails");
        let text = failed.downcast_ref::<String>().cloned();
        text.unwrap_or_else(|| failed.downcast_ref::<&str>().expect("a text").to_string())
    }

    #[test]
    fn a_check_that_failed_once_is_repeated() {
        let mut count = 0;
        let done = rounds_reported(
            || {
                count += 1;
                check!(count == 2, "round {count}");
                "done"
            },
            |why| assert!(why.ends_with("round 1"), "{why}"),
        );
        assert_eq!((done, count), ("done", 2));
    }

    #[test]
    fn a_check_that_fails_twice_fails_for_good() {
        let mut count = 0;
        let said = failure(|| {
            count += 1;
            check!(1 + 1 == 3);
        });
        assert!(said.contains("1 + 1 == 3"), "{said}");
        assert_eq!(count, 2);
    }

    #[test]
    fn an_assertion_is_never_repeated() {
        let mut count = 0;
        let said = failure(|| {
            count += 1;
            assert_eq!(count, 0, "another output");
        });
        assert!(said.contains("another output"), "{said}");
        assert_eq!(count, 1);
    }
}
