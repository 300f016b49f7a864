//! The names of the plans, looked up ahead of the program.

use foreread_backend::{Backend, Outcome};
use foreread_plan::{FileId, Kind};
use foreread_sched::Devices;
use foreread_sources::Outlook;

use super::Engine;
use crate::site::Site;

impl<B: Backend> Engine<B> {
    /// Looks up a strand's names, as far as the program has come. True if any lookup is in progress.
    pub(super) fn walk(&mut self, at: usize, now: u64) -> bool {
        let strand = &mut self.strands[at];
        let walker = &mut strand.walker;
        walker.reached(self.scheduler.queue(strand.id).position());
        let room = walker.room();
        if room > 0 {
            self.names.clear();
            let outlook = strand.source.names(room, &mut self.names);
            walker.push(&self.names, outlook == Outlook::End);
        }
        let mut site = Site {
            table: &mut self.table,
            backend: &mut self.backend,
        };
        let mut due = std::mem::take(&mut self.due);
        walker.due(
            now,
            |file| {
                let device = site.device(file)?;
                Some((device, site.backend.block(file)))
            },
            &mut due,
        );
        let is_busy = walker.is_busy();
        self.looks.clear();
        for (name, device) in due.drain(..) {
            let look = (name.file, name.kind);
            self.walks.entry(look).or_default().push((at, device));
            self.looks.push(look);
        }
        self.due = due;
        if !self.looks.is_empty() {
            self.backend.look(&self.looks);
        }
        is_busy
    }

    /// A name was looked up.
    pub(super) fn looked(&mut self, file: FileId, kind: Kind, outcome: Outcome, now: u64) {
        let mut asked = self.walks.remove(&(file, kind)).unwrap_or_default();
        let Some((at, device)) = asked.pop() else {
            return;
        };
        if !asked.is_empty() {
            // Another strand has asked, too, and is answered by itself.
            self.walks.insert((file, kind), asked);
        }
        let walker = &mut self.strands[at].walker;
        walker.looked(file, kind, device, outcome, now);
    }

    /// The program has used a name.
    pub(super) fn name(&mut self, file: FileId, kind: Kind) {
        for strand in &mut self.strands {
            strand.walker.used(file, kind);
        }
    }
}
