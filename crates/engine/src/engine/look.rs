//! Whether what was fetched is still in memory.

use foreread_backend::Backend;
use foreread_plan::PAGE;

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
        let mut waiting = self.pages.waiting(LOOK_AHEAD_MOST);
        let found = waiting.len();
        let by_file = || waiting.chunk_by(|(one, _), (other, _)| one == other);
        let files = by_file().count().min(LOOK_AHEAD_FILES);
        let few = by_file().take(files).map(<[_]>::len).sum();
        waiting.truncate(few);
        let price = waiting.len() as u64 * LOOK_AHEAD_EACH + files as u64 * LOOK_AHEAD_FILE;
        let is_all = found < LOOK_AHEAD_MOST && few == found;
        self.look_at = now + LOOK_AHEAD.max(price);
        let (mut looked, mut gone) = (0, 0);
        for (file, pages) in waiting {
            looked += pages.end - pages.start;
            if self.backend.evicted(file, pages.clone()).unwrap_or(0) == 0 {
                continue;
            }
            for page in pages {
                if self.backend.evicted(file, page..page + 1) == Some(1) {
                    gone += self.pages.evict(file, &(page..page + 1));
                    let mut site = Site {
                        table: &mut self.table,
                        backend: &mut self.backend,
                    };
                    self.scheduler.lost(file, page, &mut site);
                }
            }
        }
        self.ledger.evicted += gone * PAGE;
        if looked > 0 {
            // Of all that wait, the same share. What is on its way counts as there only where not all was looked for: it is
            // little beside the rest then.
            let all = self.pages.len() + gone;
            let there = looked - gone;
            let there = if is_all { there } else { there * all / looked };
            self.scheduler.budget().looked(there, gone * all / looked);
        }
    }
}
