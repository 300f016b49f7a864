//! Questions to the backend, and the handling of their answers.
//!
//! Invariant: the number of open questions is bounded: per file one about its length and one about its waiting pages, and about reads
//! [`READS`] in all.
//!
//! Data flow: the engine asks for a [`Purpose`] → the backend → [`Engine::answered`] → ledger, scheduler.

use std::ops::Range;

use foreread_backend::{Answer, Backend, Question, Standing, Ticket};
use foreread_plan::{FileId, PAGE};
use foreread_sched::StrandId;
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;

use super::Engine;
use crate::pages::Read;

/// Number of reads whose entry in the ledger may wait for an answer: about 64 bytes each. A thread answers 20,000 to 60,000 questions a
/// second about files in memory, so more reads wait only if a device blocks it.
const READS: usize = 1024;

/// The subject of a question.
#[derive(Debug)]
pub(super) enum Purpose {
    /// Asks which unread pages of a strand have been evicted.
    Ahead {
        strand: usize,
        /// When it was asked, in ns.
        since: u64,
    },
    /// Asks whether a file that was too short for a strand has grown.
    Beyond(StrandId),
    /// Asks about the pages of a read.
    Read(Doubt),
}

/// A read of pages that had arrived, and may have been gone again.
#[derive(Debug)]
pub(super) struct Doubt {
    /// The parts of it issued for each strand.
    pub(super) reads: SmallVec<[Read; 2]>,
    /// True if the read is known to have waited; the pages around it were asked about then.
    pub(super) waited: bool,
}

/// The questions that are unanswered.
#[derive(Debug, Default)]
pub(super) struct Questions {
    next: u64,
    open: FxHashMap<Ticket, AskedPages>,
    /// Number of open questions about reads.
    reads: usize,
    /// Files with an open question about unread pages.
    pub(super) ahead: FxHashSet<FileId>,
    /// The result so far of looking them up.
    pub(super) tally: Tally,
}

#[derive(Debug)]
struct AskedPages {
    file: FileId,
    parts: Vec<Range<u64>>,
    purpose: Purpose,
}

/// Unread pages, as far as they were checked.
#[derive(Debug, Default)]
pub(super) struct Tally {
    pub(super) looked: u64,
    pub(super) gone: u64,
    /// True if these are all of them.
    pub(super) is_all: bool,
}

impl<B: Backend> Engine<B> {
    pub(super) fn ask(&mut self, file: FileId, parts: Vec<Range<u64>>, purpose: Purpose) {
        let questions = &mut self.questions;
        let ticket = Ticket(questions.next);
        questions.next += 1;
        let which = matches!(purpose, Purpose::Ahead { .. });
        match purpose {
            Purpose::Read(_) => questions.reads += 1,
            Purpose::Ahead { .. } => {
                questions.ahead.insert(file);
            }
            Purpose::Beyond(_) => {}
        }
        let asked = AskedPages {
            file,
            parts: parts.clone(),
            purpose,
        };
        questions.open.insert(ticket, asked);
        self.backend.ask(Question {
            ticket,
            file,
            parts,
            which,
        });
    }

    /// True if one more read may wait for an answer.
    pub(super) fn may_doubt(&self) -> bool {
        self.questions.reads < READS
    }

    /// An answer has come.
    pub(super) fn answered(&mut self, ticket: Ticket, answer: &Answer) {
        let Some(asked) = self.questions.open.remove(&ticket) else {
            return;
        };
        let AskedPages { file, parts, .. } = asked;
        match asked.purpose {
            Purpose::Ahead { strand, since } => {
                self.questions.ahead.remove(&file);
                self.looked_ahead(strand, file, &parts, since, answer);
            }
            Purpose::Beyond(strand) => {
                let beyond = &mut self.strands[strand.0].beyond;
                beyond.answered(file, answer.length, strand, &mut self.scheduler);
            }
            Purpose::Read(doubt) => {
                self.questions.reads -= 1;
                let standing = answer.parts.first().cloned().unwrap_or_default();
                self.settle_doubt(&doubt, pages_of(&parts), &standing);
            }
        }
    }

    /// Enter the reads that no answer has come about: nobody knows that their pages were gone.
    pub(super) fn settle_doubts(&mut self) {
        for (_, asked) in std::mem::take(&mut self.questions.open) {
            if let Purpose::Read(doubt) = asked.purpose {
                self.enter_doubtful(&doubt.reads, 0);
            }
        }
    }

    /// The answer to the question whether a read's pages had been evicted has arrived.
    fn settle_doubt(&mut self, doubt: &Doubt, pages: u64, standing: &Standing) {
        let there: u64 = doubt.reads.iter().map(|read| read.there).sum();
        if doubt.waited {
            // Without pressure around it, a read that took long was held up by something else than the device.
            let gone = standing.evicted.is_none_or(|evicted| evicted > 0);
            let gone = if gone { there } else { 0 };
            self.enter_doubtful(&doubt.reads, gone);
            self.scheduler.budget().lost(gone);
            return;
        }
        let missing = || Some(pages.saturating_sub(standing.resident?));
        let gone = standing.evicted.or_else(missing).unwrap_or(0).min(there);
        self.looked_up(gone);
        self.enter_doubtful(&doubt.reads, gone);
        self.scheduler.budget().lost(gone);
        self.scheduler.budget().kept(there - gone);
    }

    /// Enters the resident and in-flight parts of a read for each strand; `gone` of its pages had been evicted.
    pub(super) fn enter_doubtful(&mut self, reads: &[Read], mut gone: u64) {
        for (strand, read) in self.strands.iter_mut().zip(reads) {
            let lost = gone.min(read.there);
            gone -= lost;
            strand.ledger.useful += (read.there - lost) * PAGE;
            strand.ledger.evicted += lost * PAGE;
            strand.ledger.late += read.under_way * PAGE;
        }
    }
}

fn pages_of(parts: &[Range<u64>]) -> u64 {
    parts.iter().map(|part| part.end - part.start).sum()
}
