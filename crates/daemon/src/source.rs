//! A process tree's predictions as a source of the engine.
//!
//! Data flow: the loop adds files to be fetched ([`Feed::put`]) → the engine's thread takes them ([`Source::disclose`], [`Source::names`]).

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use foreread_plan::{Expected, FileId, Kind, Name, Odds, PAGE, Pattern, ThreadId};
use foreread_sources::{Nature, Outlook, Shown, Source};

use crate::files::Pages;

/// Limit of waiting ranges: the engine takes all within milliseconds.
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
    /// Requests these pages of a file, and its name. True if there was room.
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

    /// Drops a file that was opened meanwhile. True if the engine had not taken it, and so does not know it.
    pub(crate) fn cancel(&self, file: FileId) -> bool {
        let mut queue = self.lock();
        queue.names.retain(|one| one.file != file);
        let before = queue.expected.len();
        queue.expected.retain(|one| one.file != file);
        queue.expected.len() < before
    }

    /// True if the engine has not taken all of a file.
    pub(crate) fn holds(&self, file: FileId) -> bool {
        self.lock().expected.iter().any(|one| one.file == file)
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
    /// A source with this feed; the program's predictions were right for `right` bytes and wrong for `wrong`.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_opened_before_the_engine_has_taken_it_is_not_asked_for() {
        let feed = Feed::default();
        let mut source = Predicted::new(feed.clone(), 0, 0);
        for file in [1, 2].map(FileId) {
            assert!(feed.put(file, &[(0, 4), (10, 12)], 0.6));
        }
        assert!(feed.cancel(FileId(1)));
        let (mut expected, mut names) = (Vec::new(), Vec::new());
        assert_eq!(source.disclose(100, &mut expected), Outlook::Later);
        source.names(100, &mut names);
        assert!(expected.len() == 2 && expected.iter().all(|one| one.file == FileId(2)));
        assert_eq!(names.len(), 1);
        assert!(!feed.cancel(FileId(2)), "the engine has it");
    }
}
