//! Whether what was fetched is still in memory.

use std::ops::Range;

use foreread_backend::Backend;
use foreread_plan::{FileId, PAGE};

use super::Engine;
use crate::site::Site;

/// The pages that wait to be read are looked for this often at most, in ns.
const LOOK_AHEAD: u64 = 5_000_000;
/// And after so many ns for each run of them: a look takes about a fiftieth of that.
const LOOK_AHEAD_EACH: u64 = 50_000;
/// And for each file that they are in one after the other: it is opened for that.
const LOOK_AHEAD_FILE: u64 = 500_000;
/// Runs looked for at a time, and files: more would take more than 1 ms at once.
const LOOK_AHEAD_MOST: usize = 1 << 14;
const LOOK_AHEAD_FILES: usize = 64;

impl<B: Backend> Engine<B> {
    /// Look which of the pages that wait to be read are gone again: so a session learns that several of them
    /// fill one memory when that happens, and not when the program comes to those pages.
    pub(super) fn look_ahead(&mut self, now: u64) {
        let (mut price, mut looked, mut gone) = (0, 0, 0);
        let mut is_all = true;
        for at in 0..self.strands.len() {
            let mut waiting = self.strands[at].pages.waiting(LOOK_AHEAD_MOST);
            let found = waiting.len();
            let by_file = || waiting.chunk_by(|(one, _), (other, _)| one == other);
            let files = by_file().count().min(LOOK_AHEAD_FILES);
            let few = by_file().take(files).map(<[_]>::len).sum();
            waiting.truncate(few);
            price += waiting.len() as u64 * LOOK_AHEAD_EACH + files as u64 * LOOK_AHEAD_FILE;
            is_all &= found < LOOK_AHEAD_MOST && few == found;
            let before = gone;
            for (file, pages) in waiting {
                looked += pages.end - pages.start;
                gone += self.look_at(at, file, pages);
            }
            self.strands[at].ledger.evicted += (gone - before) * PAGE;
        }
        self.look_at = now + LOOK_AHEAD.max(price);
        if looked > 0 {
            // Of all that wait, the same share. What is on its way counts as there only where not all was looked for: it is
            // little beside the rest then.
            let waits: u64 = self.strands.iter().map(|one| one.pages.len()).sum();
            let all = waits + gone;
            let there = looked - gone;
            let there = if is_all { there } else { there * all / looked };
            self.scheduler.budget().looked(there, gone * all / looked);
        }
    }

    /// Look at pages that wait for a strand's reads; how many are gone.
    fn look_at(&mut self, at: usize, file: FileId, pages: Range<u64>) -> u64 {
        if self.backend.evicted(file, pages.clone()).unwrap_or(0) == 0 {
            return 0;
        }
        let strand = &mut self.strands[at];
        let mut gone = 0;
        for page in pages {
            if self.backend.evicted(file, page..page + 1) == Some(1) {
                gone += strand.pages.evict(file, &(page..page + 1));
                let mut site = Site {
                    table: &mut self.table,
                    backend: &mut self.backend,
                };
                self.scheduler.lost(strand.id, file, page, &mut site);
            }
        }
        gone
    }
}
