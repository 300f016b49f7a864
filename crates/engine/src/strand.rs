//! One source of a session, and all that is kept about it alone: its position is in the scheduler, by its number.
//!
//! Reads that a literal or told strand had foreseen are not shown to strands that guess; all other reads are. Events of
//! files, threads and processes are shown to every strand. Pages issued for one strand and then for another have left
//! memory in between: they are `evicted` in the first one's ledger.
//!
//! Invariant: each page issued for a strand is in exactly one of its `pages` (not read yet) or a column of its ledger.

use foreread_plan::{FileId, Head, PAGE};
use foreread_sched::StrandId;
use foreread_sources::{Nature, Source};
use std::ops::Range;

use crate::beyond::Beyond;
use crate::pages::{Pages, Read};
use crate::track::Track;
use crate::walker::{Names, Walker};
use crate::worth::{IDLE_READS, Worth};
use crate::{Ledger, Phase};

/// What a strand came to.
#[derive(Clone, Debug)]
pub struct StrandReport {
    /// The source's name.
    pub name: &'static str,
    /// How the source knows.
    pub nature: Nature,
    /// What the strand was doing at the end.
    pub phase: Phase,
    /// Its part of the session's account.
    pub ledger: Ledger,
    /// What became of the names that were looked up for it.
    pub names: Names,
    /// Reads that it was held against, and how many of them it had foreseen.
    pub reads: u64,
    /// Reads that its plan knew of.
    pub foreseen: u64,
    /// Times the program was lost and found again.
    pub found_again: u64,
    /// Of the bytes issued for it because they were wanted, the share the program read. `None` if that is known of none.
    pub accuracy: Option<f64>,
}

/// A source in a session.
pub(crate) struct Strand {
    pub(crate) id: StrandId,
    pub(crate) name: &'static str,
    pub(crate) nature: Nature,
    pub(crate) source: Box<dyn Source>,
    pub(crate) phase: Phase,
    pub(crate) pages: Pages,
    /// How often the pages that wait to be read were looked for.
    pub(crate) turn: usize,
    pub(crate) ledger: Ledger,
    pub(crate) track: Track,
    pub(crate) worth: Worth,
    /// What was fetched before anything was scheduled.
    pub(crate) head: Option<Head>,
    pub(crate) beyond: Beyond,
    pub(crate) walker: Walker,
    /// Whether all of the plan has been fetched and read: what comes now is in no plan yet.
    pub(crate) ran_out: bool,
    pub(crate) exhausted: bool,
    pub(crate) reads: u64,
    pub(crate) foreseen: u64,
    pub(crate) found_again: u64,
    /// Of a guess, reads in a row that neither waited nor were of what was fetched for it.
    pub(crate) idle: u32,
    /// Whether its plan knew of the latest read.
    pub(crate) knew: bool,
    /// What of the latest read was issued for it.
    pub(crate) read: Read,
}

impl Strand {
    pub(crate) fn new(id: StrandId, name: &'static str, source: Box<dyn Source>) -> Self {
        Self {
            id,
            name,
            nature: source.nature(),
            source,
            phase: Phase::Ahead,
            pages: Pages::default(),
            turn: 0,
            ledger: Ledger::default(),
            track: Track::default(),
            worth: Worth::default(),
            head: None,
            beyond: Beyond::default(),
            walker: Walker::default(),
            ran_out: false,
            exhausted: false,
            reads: 0,
            foreseen: 0,
            found_again: 0,
            idle: 0,
            knew: false,
            read: Read::default(),
        }
    }

    /// A guessing strand was shown a read; if that concerned it: it waited, or was of what was fetched for the strand.
    pub(crate) fn weigh_guess(&mut self, concerned: bool) {
        self.idle = if concerned { 0 } else { self.idle + 1 };
        if self.idle >= IDLE_READS {
            self.idle = 0;
            self.phase = Phase::Hot;
        }
    }

    /// Whether it has anything to do, or looks for its place.
    pub(crate) fn follows(&self) -> bool {
        matches!(self.phase, Phase::Ahead | Phase::Lost)
    }

    /// Whether it says what the program reads next, as far as it has shown: of a guess, by the latest read.
    pub(crate) fn foresees(&self) -> bool {
        let knows = self.nature != Nature::Guess || self.knew;
        self.phase == Phase::Ahead && !self.ran_out && knows
    }

    /// Pages were issued for another strand, so those that were issued for this one before are gone from memory.
    pub(crate) fn give_up(&mut self, file: FileId, pages: &Range<u64>) {
        self.ledger.evicted += self.pages.evict(file, pages) * PAGE;
    }

    pub(crate) fn report(&self) -> StrandReport {
        StrandReport {
            name: self.name,
            nature: self.nature,
            phase: self.phase,
            ledger: self.ledger,
            names: self.walker.ledger(),
            reads: self.reads,
            foreseen: self.foreseen,
            found_again: self.found_again,
            accuracy: self.ledger.accuracy(),
        }
    }
}

/// What a session does, by what its strands do: it is not done, and needs the program observed, while one of them does.
pub(crate) fn phase_of(strands: &[Strand]) -> Phase {
    let order = [
        Phase::Ahead,
        Phase::Lost,
        Phase::Hot,
        Phase::Finished,
        Phase::GaveUp,
    ];
    // A guess that rests says nothing of those who know.
    let knows = |strand: &&Strand| strand.nature != Nature::Guess;
    let has_plan = strands.iter().any(|strand| knows(&strand));
    let is_any = |phase: &Phase| {
        let mut told = strands.iter();
        told.any(|strand| {
            strand.phase == *phase && (strand.follows() || !has_plan || knows(&strand))
        })
    };
    order.into_iter().find(is_any).unwrap_or(Phase::Finished)
}
