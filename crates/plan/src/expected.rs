//! An access a source of foreknowledge expects.

use std::ops::Range;

use crate::{FileId, Kind, Odds, ThreadId};

/// An expected access: disclosed by a source, stored in the plan queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expected {
    /// The file.
    pub file: FileId,
    /// The pages, `[start, end)`; empty when the file is only about to be opened.
    pub pages: Range<u64>,
    /// The thread expected to read.
    pub thread: ThreadId,
    /// Its relation to its neighbours.
    pub pattern: Pattern,
    /// Its likelihood.
    pub odds: Odds,
}

/// A name that a source expects to be opened, looked up or listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Name {
    /// Its target.
    pub file: FileId,
    /// Its use: one of the kinds that [name](Kind::names).
    pub kind: Kind,
    /// Number of the source's disclosures before it, since the source was last started again or searched for its place.
    pub before: u64,
}

/// The relation of an expected access to its neighbours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pattern {
    /// Unrelated.
    #[default]
    Scattered,
    /// Part of a sequential stream, which the kernel's own read-ahead serves better.
    Sequential,
    /// Its place among its neighbours is not known: it was found in a sample.
    Loose,
}

impl Pattern {
    /// The relation without the kernel's read-ahead: streams are treated like other reads.
    pub fn unaided(self) -> Self {
        match self {
            Self::Sequential => Self::Scattered,
            other => other,
        }
    }
}
