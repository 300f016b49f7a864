//! What is seen of the program, and what each strand makes of it.
//!
//! A read is held against the plan of each strand that follows. Where a strand that knows (and does not guess) had foreseen
//! it, the guessing ones are not bothered with it.

use foreread_backend::Backend;
use foreread_plan::{Access, FileId, FileMeta, Kind, Pattern, Seen, Sequence};
use foreread_sources::Nature;

use super::{DISCLOSE, Engine, Phase};
use crate::site::Site;
use crate::track::{Course, Track};

impl<B: Backend> Engine<B> {
    /// A file that no plan names is met: the backend is to know it. What was known of its number before is void.
    pub fn add_file(&mut self, file: FileId, meta: FileMeta) {
        self.table.forget(file);
        self.backend.add(file, meta);
        self.place_anew(file);
    }

    /// The program has a file that could not be opened ahead of it: what is disclosed of it from now on is fetched.
    fn found(&mut self, file: FileId) {
        if self.table.is_gone(file) {
            self.table.forget(file);
            self.place_anew(file);
        }
    }

    /// Where a file lies is not known any more: entries that wait for that have it asked again.
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

    /// Show reads that nobody who knows has foreseen to those who guess.
    fn show(&mut self, reads: Option<Sequence>) {
        let Some(seen) = reads.map(Seen::Read) else {
            return;
        };
        for strand in &mut self.strands {
            if strand.nature == Nature::Guess && strand.phase == Phase::Ahead {
                strand.source.see(&seen);
            }
        }
    }

    /// The program read; whether a source that knows had foreseen it, or nobody is to see it.
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
        if self.closed || self.phase() == Phase::Hot {
            if entered.missed > 0 && self.is_within_reach(access.file) {
                self.miss(access, entered.missed);
            }
            return true;
        }
        self.scheduler.saw(access);
        // What waits for the kernel's read-ahead would not gain by ours.
        let (mut known, mut taken, mut streams) = (false, false, true);
        let mut foreseen = false;
        let mut ran_out = false;
        for strand in &mut self.strands {
            if strand.phase == Phase::Hot {
                continue;
            }
            let matched = self.scheduler.observe(strand.id, access);
            strand.knew = matched.known;
            known |= matched.known;
            taken |= !matched.consumed.is_empty();
            let mut consumed = matched.consumed.iter();
            streams &= consumed.all(|(_, one)| one.pattern == Pattern::Sequential);
            let knows = strand.nature != Nature::Guess && strand.phase == Phase::Ahead;
            foreseen |= knows && matched.known;
            ran_out |= strand.ran_out;
        }
        self.reads += 1;
        self.foreseen += u64::from(known);
        self.judge(access);
        let within_reach = known || entered.ours || self.is_within_reach(access.file);
        if entered.missed > 0 && within_reach {
            self.miss(access, entered.missed);
        }
        if !within_reach {
            if ran_out {
                self.weigh(true, access.waited());
            }
            return foreseen;
        }
        let streams = streams && taken;
        // Nobody knows whether a touch waited; one of a page that is new may have.
        let may_wait = ran_out && access.kind == Kind::Touch && !known;
        let gained = entered.ours || may_wait || access.waited() && !streams;
        if gained && !entered.ours {
            self.gained = self.gained.saturating_add(access.took);
        }
        self.weigh(ran_out, gained);
        foreseen
    }

    /// The kernel reads none of this file ahead.
    pub(super) fn unaided(&mut self, file: FileId) {
        self.table.unaided(file);
        self.scheduler.unaided(file);
        for strand in &mut self.strands {
            // What was left to the kernel is to be fetched now.
            strand.ran_out = false;
            strand.source.see(&Seen::Unaided { file });
        }
    }

    /// A program that is observed waits: who guesses may look at it again.
    #[inline]
    fn wake(&mut self, access: &Access) {
        if !access.waited() || self.has_finished() {
            return;
        }
        for strand in &mut self.strands {
            if strand.nature == Nature::Guess && strand.phase == Phase::Hot {
                strand.phase = Phase::Ahead;
            }
        }
    }

    /// A read was observed; whether it `gained` or could have. Some strand may have run out.
    #[inline]
    fn weigh(&mut self, ran_out: bool, gained: bool) {
        if !ran_out {
            return;
        }
        for strand in &mut self.strands {
            if strand.ran_out && strand.worth.weigh(gained) {
                strand.phase = Phase::Finished;
            }
        }
        // The reads that were weighed were the guesses' as well: neither what they fetched nor what waited was worth it.
        if self.has_finished() {
            for strand in &mut self.strands {
                if strand.nature == Nature::Guess && strand.follows() {
                    strand.phase = Phase::Hot;
                }
            }
        }
    }

    /// Whether a plan was read to its end, what came after was not worth watching, and no other plan is followed.
    fn has_finished(&self) -> bool {
        let mut plans = self
            .strands
            .iter()
            .filter(|one| one.nature != Nature::Guess);
        let is_over = |one: &crate::strand::Strand| one.phase == Phase::Finished;
        self.strands.iter().any(is_over) && plans.all(|one| !one.follows())
    }

    /// See whether the program still follows the plans.
    #[inline]
    fn judge(&mut self, access: &Access) {
        for at in 0..self.strands.len() {
            let strand = &mut self.strands[at];
            if strand.phase == Phase::Hot {
                continue;
            }
            if strand.nature == Nature::Guess {
                // To foresee what is in memory anyway, as a page that is read again and again, is of no use.
                let ours = strand.read.there + strand.read.under_way > 0;
                strand.weigh_guess(ours || access.waited());
            } else if self.written.contains(&access.file) {
                // What the run itself has written was never foreseen, and never missed.
                continue;
            }
            strand.reads += 1;
            strand.foreseen += u64::from(strand.knew);
            if strand.nature != Nature::Literal || strand.ran_out || !strand.follows() {
                continue;
            }
            match strand.track.read(access, strand.knew) {
                Course::OnPlan => {}
                Course::Lost => strand.phase = Phase::Lost,
                Course::GiveUp => strand.phase = Phase::GaveUp,
                Course::Search => {
                    self.scheduler.restart(strand.id);
                    let found = strand.source.resync(strand.track.recent());
                    strand.walker.restart();
                    strand.track.searched(found);
                    strand.exhausted = false;
                    strand.found_again += u64::from(found);
                    strand.phase = if found { Phase::Ahead } else { Phase::Lost };
                    if found {
                        // Reads that were handed over with this one come before the next step.
                        self.disclose(at, DISCLOSE);
                    }
                }
            }
        }
    }

    /// Believe the source added last no further than it has shown to be right: it tells what another command has read.
    pub fn on_trial(mut self) -> Self {
        if let Some(strand) = self.strands.last() {
            self.scheduler.try_out(strand.id);
        }
        self
    }

    /// What the program reads from now on is not observed, until [`Engine::resume`] or the end: of the pages it has not
    /// read by now nobody can tell whether it will.
    pub fn look_away(&mut self) {
        for strand in &mut self.strands {
            strand.pages.watch(false);
            strand.walker.watch(false);
        }
    }

    /// Nobody knows what the program has read of this file so far, but for what was seen: its touches are sampled, and the last come after
    /// the last sample.
    pub fn doubt_file(&mut self, file: FileId) {
        for strand in &mut self.strands {
            strand.pages.doubt(file);
        }
    }

    /// Follow again what was as good as hot: the program waits for its device. A literal plan is looked for by what it
    /// reads from now on.
    pub fn resume(&mut self) {
        let resumes = self.phase() == Phase::Hot && !self.closed;
        for strand in &mut self.strands {
            strand.pages.watch(true);
            strand.walker.watch(true);
            if !resumes || strand.phase != Phase::Hot {
                continue;
            }
            self.scheduler.restart(strand.id);
            strand.phase = if strand.nature == Nature::Literal {
                strand.track = Track::seeking();
                Phase::Lost
            } else {
                Phase::Ahead
            };
        }
    }
}
