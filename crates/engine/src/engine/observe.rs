//! The program's observed reads, and their effect on each strand.
//!
//! A read is compared with the plan of each strand that follows. If a strand of told accesses has foreseen it, it is not shown to guessing
//! strands.

use foreread_backend::Backend;
use foreread_plan::{Access, FileId, FileMeta, Pattern, Seen, Sequence};
use foreread_sources::Nature;

use super::Engine;
use crate::site::Site;
use crate::strand::Strand;

impl<B: Backend> Engine<B> {
    /// Adds a file that no plan names, also to the backend. Earlier knowledge of its number is void.
    pub fn add_file(&mut self, file: FileId, meta: FileMeta) {
        self.table.forget(file);
        self.backend.add(file, meta);
        self.place_anew(file);
    }

    /// The program has opened a file that could not be opened ahead of it. From now on its disclosures are fetched.
    fn found(&mut self, file: FileId) {
        if self.table.is_gone(file) {
            self.table.forget(file);
            self.place_anew(file);
        }
    }

    /// A file's layout is outdated: waiting entries ask for it again.
    fn place_anew(&mut self, file: FileId) {
        let mut site = Site {
            table: &mut self.table,
            backend: &mut self.backend,
        };
        self.scheduler.place_anew(file, &mut site);
    }

    /// Something has happened in the program.
    pub fn see(&mut self, seen: &Seen) {
        let Seen::Read(sequence) = seen else {
            if let Seen::File { file, written, .. } = *seen {
                self.found(file);
                if written {
                    self.written.insert(file);
                } else {
                    self.written.remove(&file);
                }
            }
            if let Seen::Named { file, kind, .. } = *seen {
                self.name(file, kind);
            }
            for strand in &mut self.strands {
                strand.source.see(seen);
            }
            return;
        };
        if sequence.more == 0 {
            if !self.observe(&sequence.first) {
                self.show(Some(*sequence));
            }
            return;
        }
        let mut unforeseen: Option<Sequence> = None;
        for access in sequence.accesses() {
            match (&mut unforeseen, self.observe(&access)) {
                (Some(run), false) => run.more += 1,
                (None, false) => unforeseen = Some(access.into()),
                (_, true) => self.show(unforeseen.take()),
            }
        }
        self.show(unforeseen);
    }

    /// Shows the guessing strands the reads that no other strand has foreseen.
    fn show(&mut self, reads: Option<Sequence>) {
        let Some(seen) = reads.map(Seen::Read) else {
            return;
        };
        for strand in &mut self.strands {
            if strand.nature == Nature::Guess && !strand.rests() {
                strand.source.see(&seen);
            }
        }
    }

    /// Enters a read. True if a strand that does not guess had foreseen it, or if no strand is to be shown it.
    #[inline]
    fn observe(&mut self, access: &Access) -> bool {
        if !access.kind.reads() {
            return true;
        }
        let entered = self.account(access);
        if !self.closed {
            // A plan may be in memory, and of another input than the program's.
            self.wake(access);
        }
        if self.closed || self.strands.iter().all(Strand::rests) {
            if entered.missed > 0 && self.is_within_reach(access.file) {
                self.miss(access, entered.missed);
            }
            return true;
        }
        self.scheduler.saw(access);
        // Entries that wait for the kernel's read-ahead would gain nothing by ours.
        let (mut known, mut taken, mut streams) = (false, false, true);
        let mut foreseen = false;
        for strand in &mut self.strands {
            if strand.rests() {
                continue;
            }
            let matched = self.scheduler.observe(strand.id, access);
            // What the program wrote itself was in memory when it was asked for.
            if entered.missed > 0 && !entered.ours && self.written.contains(&access.file) {
                self.scheduler.waited(strand.id, access.file, &matched);
            }
            strand.knew = matched.known;
            known |= matched.known;
            taken |= !matched.consumed.is_empty();
            let mut consumed = matched.consumed.iter();
            streams &= consumed.all(|(_, one)| one.pattern == Pattern::Sequential);
            let knows = strand.nature != Nature::Guess;
            foreseen |= knows && matched.known;
        }
        self.reads += 1;
        self.foreseen += u64::from(known);
        self.judge(access);
        let within_reach = known || entered.ours || self.is_within_reach(access.file);
        if entered.missed > 0 && within_reach {
            self.miss(access, entered.missed);
        }
        let is_streamed = streams && taken;
        if within_reach && access.waited() && !entered.ours && !is_streamed {
            self.gained = self.gained.saturating_add(access.took);
        }
        foreseen
    }

    /// The kernel reads none of this file ahead.
    pub(super) fn unaided(&mut self, file: FileId) {
        self.table.unaided(file);
        self.scheduler.unaided(file);
        for strand in &mut self.strands {
            strand.source.see(&Seen::Unaided { file });
        }
    }

    /// A program that is observed waits: who guesses may look at it again.
    #[inline]
    fn wake(&mut self, access: &Access) {
        if access.waited() {
            self.strands.iter_mut().for_each(|strand| strand.idle = 0);
        }
    }

    /// Enter for each strand whether it had foreseen the read.
    #[inline]
    fn judge(&mut self, access: &Access) {
        for at in 0..self.strands.len() {
            let strand = &mut self.strands[at];
            if strand.rests() {
                continue;
            }
            if strand.nature == Nature::Guess {
                // Foreseeing pages that are in memory anyway, such as a page read again and again, is of no use.
                let ours = strand.read.there + strand.read.under_way > 0;
                strand.weigh_guess(ours || access.waited());
            } else if self.written.contains(&access.file) && !strand.knew {
                // Data written by the run itself was not missed.
                continue;
            }
            strand.reads += 1;
            strand.foreseen += u64::from(strand.knew);
        }
    }

    /// From now on the program is not observed. Whether it will read its unread pages is unknown.
    pub fn look_away(&mut self) {
        for strand in &mut self.strands {
            strand.pages.look_away();
            strand.walker.look_away();
        }
    }

    /// The program's reads of this file so far are unknown, except for observed ones: its touches are sampled, and the last may follow the
    /// last sample.
    pub fn doubt_file(&mut self, file: FileId) {
        for strand in &mut self.strands {
            strand.pages.doubt(file);
        }
    }
}
