//! A process tree's predictions as a source of the engine.
//!
//! Data flow: the loop puts in what is to be fetched ([`Feed::put`]) → the engine's thread takes it
//! ([`Source::disclose`], [`Source::names`]).

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use foreread_plan::{Expected, FileId, Kind, Name, Odds, PAGE, Pattern, ThreadId};
use foreread_sources::{Nature, Outlook, Shown, Source};

use crate::files::Pages;

/// What waits for the engine, at most, in ranges: it takes all there are within milliseconds.
const WAITING: usize = 1 << 14;

#[derive(Debug, Default)]
struct Queue {
    expected: VecDeque<Expected>,
    names: VecDeque<Name>,
    put: u64,
}

/// The loop's side of the source.
#[derive(Clone, Debug, Default)]
pub(crate) struct Feed(Arc<Mutex<Queue>>);

impl Feed {
    /// Have these pages of a file fetched, and its name looked up; whether there was room.
    pub(crate) fn put(&self, file: FileId, pages: &[Pages], likelihood: f64) -> bool {
        let mut queue = self.lock();
        if queue.expected.len() + pages.len() > WAITING {
            return false;
        }
        let name = Name {
            file,
            kind: Kind::Open,
            before: queue.put,
        };
        queue.names.push_back(name);
        let odds = Odds((likelihood * f64::from(u8::MAX)) as u8);
        for &(from, to) in pages {
            queue.put += 1;
            queue.expected.push_back(Expected {
                file,
                pages: from.into()..to.into(),
                thread: ThreadId(0),
                pattern: Pattern::Scattered,
                odds,
            });
        }
        true
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The engine's side.
pub(crate) struct Predicted {
    feed: Feed,
    shown: Shown,
}

impl Predicted {
    /// Of this feed; the program's predictions have come true for so many bytes, and not for so many.
    pub(crate) fn new(feed: Feed, right: u64, wrong: u64) -> Self {
        Self {
            feed,
            shown: Shown {
                right: right / PAGE,
                wrong: wrong / PAGE,
            },
        }
    }
}

impl Source for Predicted {
    fn nature(&self) -> Nature {
        Nature::Guess
    }

    fn shown(&self) -> Shown {
        self.shown
    }

    fn disclose(&mut self, room: usize, out: &mut Vec<Expected>) -> Outlook {
        let mut queue = self.feed.lock();
        let taken = queue.expected.len().min(room);
        out.extend(queue.expected.drain(..taken));
        Outlook::Later
    }

    fn names(&mut self, room: usize, out: &mut Vec<Name>) -> Outlook {
        let mut queue = self.feed.lock();
        let taken = queue.names.len().min(room);
        out.extend(queue.names.drain(..taken));
        Outlook::Later
    }
}
