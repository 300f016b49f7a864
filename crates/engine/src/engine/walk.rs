//! The names of the plans, looked up ahead of the program.

use foreread_backend::{Backend, Outcome};
use foreread_plan::{FileId, Kind};
use foreread_sources::Outlook;

use super::Engine;
use crate::upkeep::WAIT;

impl<B: Backend> Engine<B> {
    /// Have a strand's names looked up, as far as the program has come; whether any are under way.
    pub(super) fn walk(&mut self, at: usize) -> bool {
        let strand = &mut self.strands[at];
        let walker = &mut strand.walker;
        walker.reached(self.scheduler.queue(strand.id).position());
        let room = walker.room();
        if room > 0 {
            self.names.clear();
            let outlook = strand.source.names(room, &mut self.names);
            walker.push(&self.names, outlook == Outlook::End);
        }
        self.looks.clear();
        walker.due(&mut self.looks);
        if !self.looks.is_empty() {
            for &look in &self.looks {
                self.walks.entry(look).or_insert(at);
            }
            self.backend.look(&self.looks);
        }
        strand.walker.is_busy()
    }

    /// A name was looked up.
    pub(super) fn looked(&mut self, file: FileId, kind: Kind, outcome: Outcome, now: u64) {
        let Some(at) = self.walks.remove(&(file, kind)) else {
            if let Some(survey) = &mut self.survey {
                survey.looked(outcome == Outcome::Fetched, now);
            }
            return;
        };
        self.strands[at].walker.looked(file, kind, outcome);
        if outcome == Outcome::Fetched {
            self.upkeep.pay_in(WAIT);
        }
    }

    /// The program has used a name.
    pub(super) fn name(&mut self, file: FileId, kind: Kind) {
        let mut follows = false;
        for strand in &mut self.strands {
            strand.walker.used(file, kind);
            follows |= strand.follows();
        }
        if follows {
            self.upkeep.began();
            self.upkeep.observed();
        }
    }
}
