//! Checks whether fetched pages are still in memory.

use std::ops::Range;

use foreread_backend::{Answer, Backend};
use foreread_plan::{FileId, PAGE};

use super::Engine;
use super::ask::{Purpose, Tally};
use crate::site::Site;

/// Least time between two checks of a file, in ns.
pub(crate) const EVERY: u64 = 5_000_000;
/// Time between checks per file that is opened for them, in ns: opening a file and checking takes 10 µs, a fiftieth of it.
pub(crate) const EVERY_FILE: u64 = 500_000;
/// Added to that for each run of pages awaited in the file, in ns. Checking one takes 1 µs, a fiftieth.
const EVERY_RUN: u64 = 50_000;
/// Runs looked for at a time: at 1 µs each, 16 ms of the thread that answers questions.
const LOOK_AHEAD_MOST: usize = 1 << 14;
/// Number of files checked at the same time: 0.6 ms. Checking all files at once took up to 70 ms, which the account would take for a
/// program without gain.
const LOOK_AHEAD_FILES: usize = 64;

impl<B: Backend> Engine<B> {
    /// Factor of the session's timers compared with a session that follows one program ([`Config::calm`](crate::Config::calm)).
    pub fn calm(&self) -> u32 {
        self.calm
    }

    /// Withdraws the prediction of these pages: they are no longer expected. If they are read after all, they were useful.
    pub fn give_up(&mut self, file: FileId, pages: &Range<u64>) {
        for strand in &self.strands {
            self.scheduler.give_up(strand.id, file, pages.clone());
        }
    }

    /// Requests for these pages are made anew, under another number, because their results are unknown.
    pub fn take_back(&mut self, file: FileId, pages: &Range<u64>) {
        for strand in &self.strands {
            self.scheduler.take_back(strand.id, file, pages.clone());
        }
    }

    /// Confirms that these pages will be read, some of them later.
    pub fn come_true(&mut self, file: FileId, pages: &Range<u64>) {
        for strand in &self.strands {
            self.scheduler.come_true(strand.id, file, pages.clone());
        }
    }

    /// Asks which unread pages have been evicted. If several sessions share the memory, a session learns of evictions at once, and not when
    /// the program reads the pages.
    pub(super) fn look_ahead(&mut self, now: u64) {
        // Files that have not answered yet say nothing.
        self.weigh_look();
        let mut price = 0;
        let mut is_all = self.questions.ahead.is_empty();
        for at in 0..self.strands.len() {
            let strand = &mut self.strands[at];
            let room = LOOK_AHEAD_FILES.saturating_sub(self.questions.ahead.len());
            if room == 0 {
                is_all = false;
                break;
            }
            let (mut waiting, are_all) = strand.pages.waiting(strand.turn, room, LOOK_AHEAD_MOST);
            strand.turn = strand.turn.wrapping_add(1);
            let found = waiting.len();
            waiting.retain(|(file, _)| !self.questions.ahead.contains(file));
            is_all &= are_all && waiting.len() == found;
            let mut asked = Vec::new();
            for runs in waiting.chunk_by(|(one, _), (other, _)| one == other) {
                price += EVERY_FILE + runs.len() as u64 * EVERY_RUN;
                let parts: Vec<_> = runs.iter().map(|(_, pages)| pages.clone()).collect();
                asked.push((runs[0].0, parts));
            }
            for (file, parts) in asked {
                let purpose = Purpose::Ahead {
                    strand: at,
                    since: now,
                };
                self.ask(file, parts, purpose);
            }
        }
        self.questions.tally.is_all = is_all;
        self.look_at = now + EVERY.max(price) * u64::from(self.calm());
    }

    /// The answer about a strand's unread pages, in the check of `since`.
    pub(super) fn looked_ahead(
        &mut self,
        at: usize,
        file: FileId,
        parts: &[Range<u64>],
        since: u64,
        answer: &Answer,
    ) {
        let mut site = Site {
            table: &mut self.table,
            backend: &mut self.backend,
        };
        let tally = &mut self.questions.tally;
        let strand = &mut self.strands[at];
        for (part, standing) in parts.iter().zip(&answer.parts) {
            tally.looked += part.end - part.start;
            for run in &standing.gone {
                let (id, scheduler) = (strand.id, &mut self.scheduler);
                let lost = |run: Range<u64>| {
                    for page in run {
                        scheduler.lost(id, file, page, &mut site);
                    }
                };
                let gone = strand.pages.evict_arrived(file, run, since, lost);
                strand.ledger.evicted += gone * PAGE;
                tally.gone += gone;
            }
        }
        if self.questions.ahead.is_empty() {
            self.weigh_look();
        }
    }

    /// Reports the result of the look to the budget.
    fn weigh_look(&mut self) {
        let Tally {
            looked,
            gone,
            is_all,
        } = std::mem::take(&mut self.questions.tally);
        if looked == 0 {
            return;
        }
        let is_all = is_all && self.questions.ahead.is_empty();
        // The same share of all unread pages. Pages in flight count as resident only if not all pages were checked: they are few compared
        // with the rest then.
        let waits: u64 = self.strands.iter().map(|one| one.pages.len()).sum();
        let all = waits + gone;
        let there = looked - gone;
        let there = if is_all { there } else { there * all / looked };
        self.scheduler.budget().looked(there, gone * all / looked);
    }
}
