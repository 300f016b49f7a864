//! A source of a session, with all its state. Its position is in the scheduler, under its number.
//!
//! A guessing strand is not shown reads that a strand of told accesses has foreseen; it sees all others. Events of files, threads and
//! processes are shown to every strand. Pages issued for one strand and then for another had left memory in between: they are `evicted` in
//! the first one's ledger.
//!
//! Invariant: each page issued for a strand is in exactly one of its `pages` (not read yet) or a column of its ledger.

use foreread_plan::{FileId, PAGE};
use foreread_sched::StrandId;
use foreread_sources::{Nature, Source};
use std::ops::Range;

use crate::beyond::Beyond;
use crate::pages::{Pages, Read};
use crate::walker::Walker;
use crate::{Ledger, NameLedger};

/// A guess rests after this many reads in a row that neither waited nor hit its fetched pages. Ten times a lead of a hundred reads.
pub const IDLE_READS: u32 = 1000;

/// The account of a strand.
#[derive(Clone, Debug)]
pub struct StrandReport {
    /// The source's name.
    pub name: &'static str,
    /// The nature of the source's knowledge.
    pub nature: Nature,
    /// Its part of the session's account.
    pub ledger: Ledger,
    /// The account of the names looked up for it.
    pub names: NameLedger,
    /// Reads that it was held against, and how many of them it had foreseen.
    pub reads: u64,
    /// Reads that its plan knew of.
    pub foreseen: u64,
    /// Share of its issued bytes, infill left out, that the program read. `None` if the fate of all is unknown.
    pub accuracy: Option<f64>,
}

/// A source in a session.
pub(crate) struct Strand {
    pub(crate) id: StrandId,
    pub(crate) name: &'static str,
    pub(crate) nature: Nature,
    pub(crate) source: Box<dyn Source>,
    pub(crate) pages: Pages,
    /// Number of looks for its unread pages in memory.
    pub(crate) turn: usize,
    pub(crate) ledger: Ledger,
    pub(crate) beyond: Beyond,
    pub(crate) walker: Walker,
    pub(crate) exhausted: bool,
    pub(crate) reads: u64,
    pub(crate) foreseen: u64,
    /// For a guess: consecutive reads that neither waited nor used its fetched pages.
    pub(crate) idle: u32,
    /// True if its plan had the latest read.
    pub(crate) knew: bool,
    /// The part of the latest read that was issued for it.
    pub(crate) read: Read,
}

impl Strand {
    pub(crate) fn new(id: StrandId, name: &'static str, source: Box<dyn Source>) -> Self {
        Self {
            id,
            name,
            nature: source.nature(),
            source,
            pages: Pages::default(),
            turn: 0,
            ledger: Ledger::default(),
            beyond: Beyond::default(),
            walker: Walker::default(),
            exhausted: false,
            reads: 0,
            foreseen: 0,
            idle: 0,
            knew: false,
            read: Read::default(),
        }
    }

    /// A read was shown to a guessing strand. `concerned`: the read waited, or used pages fetched for the strand.
    pub(crate) fn weigh_guess(&mut self, concerned: bool) {
        self.idle = if concerned { 0 } else { self.idle + 1 };
    }

    /// True if it is a guess without present use, until a read waits.
    pub(crate) fn rests(&self) -> bool {
        self.idle >= IDLE_READS
    }

    /// True if it predicts the program's next read, as far as it has proved; for a guess, by the latest read.
    pub(crate) fn foresees(&self) -> bool {
        let knows = self.nature != Nature::Guess || self.knew;
        !self.rests() && knows
    }

    /// Pages were issued for another strand, so those that were issued for this one before are gone from memory.
    pub(crate) fn give_up(&mut self, file: FileId, pages: &Range<u64>) {
        self.ledger.evicted += self.pages.evict(file, pages) * PAGE;
    }

    pub(crate) fn report(&self) -> StrandReport {
        StrandReport {
            name: self.name,
            nature: self.nature,
            ledger: self.ledger,
            names: self.walker.ledger(),
            reads: self.reads,
            foreseen: self.foreseen,
            accuracy: self.ledger.accuracy(),
        }
    }
}
