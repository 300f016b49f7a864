//! C programs (`tests/c`) against the library, as the shared library, the archive and by
//! preloading; with sanitizers; and the headers, symbols and man pages they go by.
//!
//! A program exits with 0, 1 (and the line that failed on stderr), or 77: it cannot be tested
//! here. What this machine cannot run is reported as ignored, with the reason.
//!
//! Data flow: [`library::built`] → [`compile`](program::compile) → run in a directory of its own.

mod headers;
mod installed;
mod library;
mod program;
mod secure;

use libtest_mimic::{Arguments, Failed, Trial};
use program::{Link, PROGRAMS};

/// Programs that print what calls answer, and what is the same.
const SAME_WITHOUT: [(&str, &str); 2] = [
    ("identical", "reads are the same"),
    (
        "conformance",
        "every call answers hostile arguments the same",
    ),
];

/// What `make test` links, and what `make test-all` does besides.
const QUICK_LINKS: &[Link] = &[Link::Shared, Link::Preload];
const OTHER_LINKS: &[Link] = &[Link::Archive, Link::Sanitized];

/// Why what forks is not sanitized. One child in 160 waited for a lock of the sanitizer's allocator for ever, which a thread of its parent
/// had held at the fork.
const FORKED: &str =
    "the sanitizer's allocator stays locked in a child, where another thread was in it at the fork";

fn main() {
    let mut arguments = Arguments::from_args();
    // The programs have timers and crowds of threads of their own.
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

/// The ways to link of the ring that the environment names, as for the whole programs (`tests/src/suite.rs`).
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
