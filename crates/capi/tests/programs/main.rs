//! C programs (`tests/c`) with the library: the shared library, the archive, and the preloaded one; with sanitizers.
//! Also the headers, symbols and man pages.
//!
//! A program exits with 0, with 1 (and the failed line on stderr), or with 77 if it cannot be tested here. Tests that
//! this machine cannot run are reported as ignored, with the reason.
//!
//! Data flow: [`library::built`] → [`compile`](program::compile) → run in a directory of its own.

mod headers;
mod installed;
mod library;
mod program;
mod secure;

use libtest_mimic::{Arguments, Failed, Trial};
use program::{Link, PROGRAMS};

/// Programs that print the results of calls, and the titles of their tests.
const SAME_WITHOUT: [(&str, &str); 2] = [
    ("identical", "reads are the same"),
    (
        "conformance",
        "every call answers hostile arguments the same",
    ),
];

/// The ways to link in `make test`, and the additional ones in `make test-all`.
const QUICK_LINKS: &[Link] = &[Link::Shared, Link::Preload];
const OTHER_LINKS: &[Link] = &[Link::Archive, Link::Sanitized];

/// The reason why programs that fork are not sanitized: a child may wait for ever for a lock of the sanitizer's allocator that a thread of
/// its parent held at the fork.
const FORKED: &str =
    "the sanitizer's allocator stays locked in a child, where another thread was in it at the fork";

fn main() {
    let mut arguments = Arguments::from_args();
    // The programs have timers and many threads of their own.
    arguments.test_threads.get_or_insert(1);
    let sanitized = Link::Sanitized.missing();
    let mut trials = Vec::new();
    let links = links(&arguments);
    for &name in PROGRAMS {
        for &link in links {
            let title = format!("{name}, {}", link.title());
            let missing = match (name, link) {
                ("fork", Link::Sanitized) => Some(FORKED.to_owned()),
                (_, Link::Sanitized) => sanitized.clone(),
                _ => None,
            };
            trials.push(trial(title, missing, move || program::run(name, link)));
        }
    }
    for &link in links {
        let missing = sanitized.clone().filter(|_| link == Link::Sanitized);
        for (name, what) in SAME_WITHOUT {
            let title = format!("{what} with the library and without, {}", link.title());
            trials.push(trial(title, missing.clone(), move || {
                program::same_without(name, link)
            }));
        }
    }
    if links == OTHER_LINKS {
        libtest_mimic::run(&arguments, trials).exit();
    }
    let title = "the examples do the same work with foreread and without".to_owned();
    trials.push(trial(title, None, program::examples));
    let more = headers::tests().into_iter().chain(installed::tests());
    for (title, missing, test) in more.chain(secure::tests()) {
        trials.push(trial(title.to_owned(), missing, test));
    }
    libtest_mimic::run(&arguments, trials).exit();
}

/// The ways to link in the ring of tests that the environment names, as for the whole programs (`tests/src/suite.rs`).
fn links(arguments: &Arguments) -> &'static [Link] {
    let ring = std::env::var("FOREREAD_RING").unwrap_or_default();
    match ring.as_str() {
        _ if arguments.filter.is_some() => &Link::ALL,
        "every" => &Link::ALL,
        "rest" => OTHER_LINKS,
        _ => QUICK_LINKS,
    }
}

fn trial(
    title: String,
    missing: Option<String>,
    test: impl FnOnce() -> Result<(), Failed> + Send + 'static,
) -> Trial {
    match missing {
        None => Trial::test(title, test),
        Some(missing) => Trial::test(format!("{title} (cannot run here: {missing})"), || Ok(()))
            .with_ignored_flag(true),
    }
}
