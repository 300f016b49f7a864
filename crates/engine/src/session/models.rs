//! Models of the program's threads, the engine's thread and the thread that ends the session, in every order.
//!
//! `make test-loom` runs these with the real engine and a backend that does nothing. One thread at a time calls the session, as in the
//! client and in `foreread run`.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Instant;

use foreread_backend::NullBackend;
use foreread_plan::{Access, Expected, Extent, FileId, Kind, Odds, PAGE, Pattern, Seen, ThreadId};
use foreread_sources::{Nature, Outlook, Source};
use loom::thread;

use super::{Session, lock};
use crate::sync::{Mutex, yield_now};
use crate::{Config, Engine, Report};

/// Runs a model in every order in which a thread that could go on is made to wait up to `cut_short` times.
fn in_every_order(cut_short: usize, model: impl Fn() + Send + Sync + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(cut_short);
    builder.max_branches = 10_000;
    builder.check(model);
}

/// A source with the program's future reads.
#[derive(Clone)]
struct Said {
    entries: Arc<Mutex<VecDeque<Expected>>>,
}

impl Said {
    fn nothing() -> Self {
        let entries = Arc::default();
        Self { entries }
    }

    fn say(&self, page: u64) {
        lock(&self.entries).push_back(Expected {
            odds: Odds::SURE,
            file: FileId(1),
            pages: page..page + 1,
            thread: ThreadId(0),
            pattern: Pattern::Scattered,
        });
    }
}

impl Source for Said {
    fn nature(&self) -> Nature {
        Nature::Told
    }

    fn disclose(&mut self, room: usize, out: &mut Vec<Expected>) -> Outlook {
        let mut entries = lock(&self.entries);
        let count = room.min(entries.len());
        out.extend(entries.drain(..count));
        Outlook::Later
    }
}

fn session(said: &Said) -> Session {
    let source = Box::new(said.clone());
    let make =
        || Engine::new(NullBackend::default(), Config::default()).with_strand("replay", source);
    Session::start(make, Instant::now()).expect("a thread")
}

/// A read of 2^`number` pages that waited for the device: the sum shows which reads were accounted for.
fn read(number: u32) -> Access {
    Access {
        file: FileId(2),
        extent: Extent::new(0, PAGE << number),
        thread: ThreadId(0),
        kind: Kind::Pread,
        start: 0,
        took: 1_000_000_000,
    }
}

/// Asserts that each of this many reads is in the account exactly once.
fn assert_accounted(report: Option<Report>, reads: u32) {
    let missed = report.expect("a report").ledger.missed;
    assert_eq!(missed / PAGE, (1 << reads) - 1, "{reads} reads");
}

/// Observes this many reads, and wakes the engine after the first.
fn observe(session: &Session, reads: u32) {
    for number in 0..reads {
        session.see(Seen::Read(read(number).into()));
        assert!(session.backlog() <= 1 + number as usize);
        if number == 0 {
            session.wake();
        }
    }
}

#[test]
fn each_read_observed_is_accounted_for_once_by_the_engines_thread() {
    in_every_order(3, || {
        let session = session(&Said::nothing());
        observe(&session, 3);
        assert_accounted(session.finish(), 3);
    });
}

#[test]
fn and_by_the_thread_that_takes_the_engine_away_from_it() {
    in_every_order(3, || {
        let session = session(&Said::nothing());
        observe(&session, 3);
        let engines = session.thread.as_ref().expect("running").thread().clone();
        assert_accounted(session.account(), 3);
        // The thread would end with the process.
        engines.unpark();
    });
}

#[test]
fn threads_that_take_turns_lose_none_of_each_others() {
    in_every_order(2, || {
        let shared = Arc::new(Mutex::new(Some(session(&Said::nothing()))));
        let other = {
            let shared = Arc::clone(&shared);
            thread::spawn(move || {
                if let Some(session) = &*lock(&shared) {
                    session.see(Seen::Read(read(1).into()));
                    session.wake();
                }
            })
        };
        if let Some(session) = &*lock(&shared) {
            session.see(Seen::Read(read(0).into()));
        }
        other.join().expect("the other thread");
        let session = lock(&shared).take().expect("the session");
        assert_accounted(session.finish(), 2);
    });
}

#[test]
fn what_was_observed_before_a_wake_needs_no_timer() {
    in_every_order(3, || {
        let session = session(&Said::nothing());
        session.see(Seen::Read(read(0).into()));
        session.see(Seen::Read(read(1).into()));
        session.wake();
        while session.ledger().missed < 3 * PAGE {
            yield_now();
        }
        assert_eq!(session.backlog(), 0);
        assert_accounted(session.finish(), 2);
    });
}

#[test]
fn nor_does_what_was_said_before_it() {
    in_every_order(3, || {
        let said = Said::nothing();
        let session = session(&said);
        for page in [7, 9] {
            said.say(page);
            session.wake();
            while !lock(&said.entries).is_empty() {
                yield_now();
            }
        }
        drop(session);
    });
}

#[test]
fn a_session_that_is_dropped_ends_its_thread() {
    in_every_order(3, || {
        let session = session(&Said::nothing());
        session.see(Seen::Read(read(0).into()));
        drop(session);
    });
}
