//! An access a source of foreknowledge expects.

use std::ops::Range;

use crate::{FileId, Kind, Odds, ThreadId};

/// One expected access: what a source discloses and the plan queue holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expected {
    /// The file.
    pub file: FileId,
    /// The pages, `[start, end)`; empty when the file is only about to be opened.
    pub pages: Range<u64>,
    /// The thread expected to read.
    pub thread: ThreadId,
    /// How it goes with its neighbours.
    pub pattern: Pattern,
    /// How likely it is.
    pub odds: Odds,
}

/// A name that a source expects to be used: opened, looked at or listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Name {
    /// What it leads to.
    pub file: FileId,
    /// How it is used: one of the kinds that [name](Kind::names).
    pub kind: Kind,
    /// How many disclosures of its source come before it, since the source was last started over or looked for its place.
    pub before: u64,
}

/// How an expected access goes with those before and after it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pattern {
    /// One for itself.
    #[default]
    Scattered,
    /// Part of a sequential stream, which the kernel's own read-ahead serves better.
    Sequential,
    /// Its place among its neighbours is not known: it was found in a sample.
    Loose,
}

impl Pattern {
    /// What an access is where the kernel reads nothing ahead: a stream is read like anything else.
    pub fn unaided(self) -> Self {
        match self {
            Self::Sequential => Self::Scattered,
            other => other,
        }
    }
}
