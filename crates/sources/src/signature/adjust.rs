//! Adjusts signatures learnt elsewhere to the program's present reads (the paper, section V.C).
//!
//! Two reads give a stride and a size. If both are the signature's, the signature is followed from the program's position. If one of them
//! is, the other is learnt from the program, and the line through the two reads is followed. If neither is, the signature is not used. A
//! signature is followed only while it is right.

use std::cmp::Reverse;
use std::sync::Arc;

use foreread_plan::{Extent, Role};

use super::cursors::Line;
use super::pattern::{Loop, Term, Trace};
use super::walk::Walk;

/// Terms that a signature may have to be kept: 16 KiB.
const TERMS: usize = 64;

/// Loops kept per role: a bound on memory and on the size of a record; other bounds were not measured.
pub(super) const LOOPS: usize = 4;

/// Reads of a loop that are counted to see which of several is the largest.
const LOOKED_AT: usize = 1 << 12;

/// The signature of a role: from an earlier run, or from this run for later files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Learnt {
    /// The kind of file.
    pub role: Role,
    /// The loop of its reads.
    pub nest: Loop,
}

impl Learnt {
    /// The signatures of this role learnt from one file: the loops with the most reads, no two of which begin alike, at most [`LOOPS`].
    pub fn of(role: Role, trace: &Trace) -> Vec<Self> {
        let mut loops: Vec<&Loop> = trace.terms.iter().filter_map(Self::kept).collect();
        let reads = |nest: &&Loop| Walk::new(Loop::clone(nest)).take(LOOKED_AT).count();
        loops.sort_by_cached_key(|nest| Reverse(reads(nest)));
        let mut steps = Vec::new();
        loops.retain(|nest| {
            let step = Step::first_of(&Arc::new(Loop::clone(nest)));
            let is_new = !steps.contains(&step);
            steps.push(step);
            is_new
        });
        let nests = loops.into_iter().take(LOOPS).cloned();
        nests.map(|nest| Self { role, nest }).collect()
    }

    /// The loop of a term, if it is kept.
    fn kept(term: &Term) -> Option<&Loop> {
        match term {
            Term::Loop(nest) if Self::fits(nest) => Some(nest),
            _ => None,
        }
    }

    /// True if a loop is small enough to be kept.
    pub(super) fn fits(nest: &Loop) -> bool {
        fn terms(body: &[Term]) -> usize {
            let inner = body.iter().map(|term| match term {
                Term::Read(_) => 0,
                Term::Loop(inner) => terms(&inner.body),
            });
            body.len() + inner.sum::<usize>()
        }
        terms(&nest.body) <= TERMS
    }
}

/// From one read to the next: bytes between their starts, and the size of the later one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Step {
    stride: i64,
    size: u64,
}

impl Step {
    pub(super) fn between(one: Extent, next: Extent) -> Self {
        Self {
            stride: next.offset.wrapping_sub(one.offset) as i64,
            size: next.len,
        }
    }

    /// The first of a nest.
    pub(super) fn first_of(nest: &Arc<Loop>) -> Option<Self> {
        let mut walk = Walk::endless(Arc::clone(nest), 0);
        Some(Self::between(walk.next()?, walk.next()?))
    }
}

/// The decision about a signature.
#[derive(Clone, Debug)]
pub(super) enum Adjusted {
    /// It is followed from this position.
    Follow(Model),
    /// The program's own line is followed from here.
    Learn(Line),
    /// It is not used.
    Leave,
}

/// Adjust a signature to a program that has made these two reads.
pub(super) fn adjust(nest: &Arc<Loop>, first: Extent, second: Extent) -> Adjusted {
    let Some(signature) = Step::first_of(nest) else {
        return Adjusted::Leave;
    };
    let program = Step::between(first, second);
    if program.stride == 0 {
        return Adjusted::Leave;
    }
    match (
        program.stride == signature.stride,
        program.size == signature.size,
    ) {
        (true, true) => Adjusted::Follow(Model::new(nest, first)),
        (false, false) => Adjusted::Leave,
        _ => {
            let first = Extent::new(first.offset, second.len);
            Line::through(first, second).map_or(Adjusted::Leave, Adjusted::Learn)
        }
    }
}

/// A signature that is followed from another initial position than its own.
#[derive(Clone, Debug)]
pub(super) struct Model {
    walk: Walk,
    moved: u64,
}

impl Model {
    /// The signature, of which the program has made the first two reads, the first of them here.
    fn new(nest: &Arc<Loop>, first: Extent) -> Self {
        let mut walk = Walk::endless(Arc::clone(nest), 0);
        let own = walk.next().map_or(0, |read| read.offset);
        walk.next();
        Self {
            walk,
            moved: first.offset.wrapping_sub(own),
        }
    }

    /// The read that is expected next.
    pub(super) fn peek(&self) -> Option<Extent> {
        let read = self.walk.peek()?;
        let read = Extent::new(read.offset.wrapping_add(self.moved), read.len);
        let end = read.offset.checked_add(read.len)?;
        (read.len > 0 && end <= i64::MAX as u64).then_some(read)
    }
}

impl Iterator for Model {
    type Item = Extent;

    fn next(&mut self) -> Option<Extent> {
        let read = self.peek()?;
        self.walk.advance();
        Some(read)
    }
}
