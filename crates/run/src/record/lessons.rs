//! Learns from a run how files of a role are read, for other runs that read files of the same role.
//!
//! Data flow: reads → one recogniser for each thread and file → at the end the largest patterns of each role, by name and by turn → the
//! record; from a record → [`learnt`] → the source of signatures.
//!
//! Invariant: memory is bounded by [`BUILDERS`] recognisers of 10 KiB. Patterns in a record are untrusted: one that cannot be decoded is
//! left out.

use std::cmp::Reverse;

use foreread_plan::format::{self, MAX_SIGNATURES, MAX_SIGNATURES_BYTES};
use foreread_plan::{FileId, Kind, Role, Sequence, ThreadId};
use foreread_sources::signature::{
    Builder, KEPT_AFTER, Learnt, Limits, Signature, Term, Trace, Walk, parse, weight,
};
use rustc_hash::FxHashMap;

use super::orders::ENOUGH_READS;

/// Number of pairs of thread and file that are followed, the first ones: 5 MiB of recognisers.
const BUILDERS: usize = 512;
/// Bytes of a signature in the record's JSON besides its notation: names, quotes and the role.
const AROUND: usize = 64;

/// The patterns of a run that is being recorded.
#[derive(Default)]
pub(super) struct Lessons {
    /// With the reads that each was shown.
    builders: FxHashMap<(ThreadId, FileId), (Builder, u64)>,
}

impl Lessons {
    /// The program has read.
    pub(super) fn read(&mut self, sequence: &Sequence) {
        let first = &sequence.first;
        // A sample has no order inside.
        if !first.kind.reads() || first.kind == Kind::Touch || first.extent.is_empty() {
            return;
        }
        let pair = (first.thread, first.file);
        if self.builders.len() >= BUILDERS && !self.builders.contains_key(&pair) {
            return;
        }
        let builder = self.builders.entry(pair);
        let (builder, shown) = builder.or_insert_with(|| (Builder::new(Limits::ONLINE), 0));
        *shown += sequence.count();
        for access in sequence.accesses() {
            builder.push(access.extent);
        }
    }

    /// True if no file was read often enough to have a pattern.
    pub(super) fn is_empty(&self) -> bool {
        self.builders.values().all(|(_, shown)| *shown < KEPT_AFTER)
    }

    /// The largest patterns of each role, as records keep them, those with the most reads first.
    pub(super) fn signatures(self, roles: impl Fn(FileId) -> [Role; 2]) -> Vec<format::Signature> {
        let mut by_role: FxHashMap<Role, Trace> = FxHashMap::default();
        for ((_, file), (builder, shown)) in self.builders {
            if shown < KEPT_AFTER {
                continue;
            }
            for learnt in Learnt::of(Role::default(), &builder.finish()) {
                if reads(&learnt) < KEPT_AFTER || is_onward(&learnt) {
                    continue;
                }
                for role in roles(file)
                    .into_iter()
                    .filter(|one| *one != Role::default())
                {
                    let trace = by_role.entry(role).or_default();
                    trace.terms.push(Term::Loop(learnt.nest.clone()));
                }
            }
        }
        let each = by_role
            .iter()
            .flat_map(|(role, trace)| Learnt::of(*role, trace));
        let mut all: Vec<_> = each.map(|learnt| (reads(&learnt), learnt)).collect();
        all.sort_by_key(|(reads, learnt)| (Reverse(*reads), learnt.role.0));
        let mut room = MAX_SIGNATURES_BYTES;
        let all = all.into_iter().map(|(_, learnt)| format::Signature {
            role: learnt.role.to_string(),
            notation: Signature::reads(Term::Loop(learnt.nest)).to_string(),
        });
        let fitting = all.take_while(|one| {
            let taken = one.notation.len() + AROUND;
            let fits = taken <= room;
            room = room.saturating_sub(taken);
            fits
        });
        fitting.take(MAX_SIGNATURES).collect()
    }
}

fn reads(learnt: &Learnt) -> u64 {
    weight(&Signature::reads(Term::Loop(learnt.nest.clone()))).0
}

/// True if the pattern is sequential.
fn is_onward(learnt: &Learnt) -> bool {
    let mut end = None;
    Walk::new(learnt.nest.clone())
        .take(ENOUGH_READS as usize)
        .all(|read| {
            let onward = end.is_none_or(|end| end == read.offset);
            end = Some(read.end());
            onward
        })
}

/// The patterns in a record.
pub(crate) fn learnt(signatures: &[format::Signature]) -> Vec<Learnt> {
    let read = |one: &format::Signature| {
        let role = one.role.parse().ok()?;
        let signatures = parse(&one.notation, &[]).ok()?;
        let terms = signatures.into_iter().map(|one| one.term).collect();
        Some(Learnt::of(role, &Trace { terms }))
    };
    signatures.iter().filter_map(read).flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use foreread_plan::{Access, Extent};

    fn read(thread: u32, file: u32, offset: u64, more: u16) -> Sequence {
        let first = Access {
            file: FileId(file),
            extent: Extent::new(offset, 4096),
            thread: ThreadId(thread),
            kind: Kind::Pread,
            start: 0,
            took: 0,
        };
        Sequence { first, more }
    }

    fn role(file: FileId) -> [Role; 2] {
        [Role(u64::from(file.0) + 1), Role(u64::from(file.0) + 100)]
    }

    #[test]
    fn what_a_run_teaches_is_kept_and_read_back() {
        let mut lessons = Lessons::default();
        for n in 0..400 {
            lessons.read(&read(0, 0, n * 65_536, 0));
            // Front to back, in no order, and too few.
            lessons.read(&read(0, 1, n * 40_960, 9));
            lessons.read(&read(0, 2, (n * n * 7919 + n * 31) % 100_000 * 4096, 0));
            if n < 8 {
                lessons.read(&read(0, 3, n * 8192, 0));
            }
        }
        let kept = lessons.signatures(role);
        let learnt = learnt(&kept);
        let roles: Vec<_> = learnt.iter().map(|one| one.role).collect();
        assert_eq!(roles, [Role(1), Role(100)], "by name and by turn: {kept:?}");
        let reads = Walk::new(learnt[0].nest.clone()).map(|read| (read.offset, read.len));
        assert!(reads.eq((0..400).map(|n| (n * 65_536, 4096))));
    }

    #[test]
    fn each_pattern_of_a_file_is_kept_and_of_those_that_begin_alike_the_largest() {
        let mut lessons = Lessons::default();
        (0..100).for_each(|n| lessons.read(&read(0, 0, n * 65_536, 0)));
        (0..400).for_each(|n| lessons.read(&read(0, 0, (400 - n) * 12_288, 0)));
        // Another thread, as the first began, and for less long.
        (0..50).for_each(|n| lessons.read(&read(1, 0, n * 65_536, 0)));
        let kept = learnt(&lessons.signatures(|_| [Role(1), Role::default()]));
        let counts: Vec<_> = kept.iter().map(reads).collect();
        assert_eq!(counts, [400, 100], "{kept:?}");
    }

    #[test]
    fn a_pattern_that_cannot_be_read_costs_nothing_but_itself() {
        let signature = |role: &str, notation: &str| format::Signature {
            role: role.into(),
            notation: notation.into(),
        };
        let mut lessons = Lessons::default();
        (0..100).for_each(|n| lessons.read(&read(0, 0, n * 65_536, 0)));
        let sound = lessons.signatures(role).remove(0);
        let mixed = [
            signature("no role", &sound.notation),
            signature(&sound.role, "{READ, 5"),
            sound,
        ];
        assert_eq!(learnt(&mixed).len(), 1);
    }

    #[test]
    fn of_very_many_files_the_first_are_looked_at() {
        let mut lessons = Lessons::default();
        for file in 0..10_000 {
            (0..4).for_each(|n| lessons.read(&read(0, file, n * 65_536, 0)));
        }
        assert_eq!(lessons.builders.len(), BUILDERS);
        assert!(lessons.signatures(role).is_empty());
    }
}
