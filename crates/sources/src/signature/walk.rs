//! A place in a nest of loops, which moves on read by read.
//!
//! The same walk expands a nest, checks a program against it, and predicts. Moving on inside the innermost loop is
//! two additions.
//!
//! Invariant: unless the walk has ended, its frames lead from the outermost loop to a read: the next one.

use std::sync::Arc;

use foreread_plan::Extent;
use smallvec::SmallVec;

use super::pattern::{Affine, Loop, Term, Trace};

/// Steps between loops without a single read, after which a walk ends: the iterations of a nest may be empty, and
/// there may be any number of them.
const EMPTY_STEPS: u32 = 1 << 16;

/// A walk's position in one of the loops around its next read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Frame {
    /// The iteration.
    pub(crate) index: u64,
    /// Number of iterations.
    pub(crate) count: u64,
    /// The term of the body.
    pub(crate) term: usize,
}

/// The loops that lead to a read, the outermost first.
pub(crate) type Frames = SmallVec<[Frame; 4]>;

/// A place in a nest of loops. As an iterator it gives the reads from that place on.
#[derive(Clone, Debug)]
pub struct Walk {
    nest: Arc<Loop>,
    frames: Frames,
    ended: bool,
    /// The next read: first byte and length.
    next: (i64, i64),
    /// Added to offset and length by one iteration of the innermost loop.
    stride: (i64, i64),
    /// Iterations that the innermost loop has after this one, if its body is one read.
    left: u64,
}

impl Walk {
    /// The beginning of a nest.
    pub fn new(nest: Loop) -> Self {
        let count = count(&nest.count, &[]);
        Self::at(Arc::new(nest), count, 0, 0)
    }

    /// The beginning of this iteration of a nest whose outermost loop has no known end.
    pub fn endless(nest: Arc<Loop>, index: u64) -> Self {
        Self::at(nest, u64::MAX, index, 0)
    }

    /// Term `term` of iteration `index` in a nest of `count` iterations.
    pub(crate) fn at(nest: Arc<Loop>, count: u64, index: u64, term: usize) -> Self {
        let root = Frame { index, count, term };
        Self::within(nest, SmallVec::from_slice(&[root]))
    }

    /// The place that these frames lead to.
    pub(crate) fn within(nest: Arc<Loop>, frames: Frames) -> Self {
        let mut walk = Self {
            nest,
            frames,
            ended: false,
            next: (0, 0),
            stride: (0, 0),
            left: 0,
        };
        walk.settle();
        walk
    }

    /// The nest.
    pub fn nest(&self) -> &Arc<Loop> {
        &self.nest
    }

    /// The loops that lead to the next read.
    pub(crate) fn frames(&self) -> &Frames {
        &self.frames
    }

    /// The next read; none where the nest has ended.
    #[inline]
    pub fn peek(&self) -> Option<Extent> {
        (!self.ended).then(|| Extent::new(self.next.0 as u64, self.next.1 as u64))
    }

    /// True if the next read is this one.
    #[inline]
    pub fn expects(&self, read: Extent) -> bool {
        self.next == (read.offset as i64, read.len as i64) && !self.ended
    }

    /// Moves on by one read.
    #[inline]
    pub fn advance(&mut self) {
        if self.left > 0 {
            self.left -= 1;
            self.next.0 = self.next.0.wrapping_add(self.stride.0);
            self.next.1 = self.next.1.wrapping_add(self.stride.1);
            if let Some(frame) = self.frames.last_mut() {
                frame.index += 1;
            }
            return;
        }
        self.step();
    }

    /// Moves on where the innermost loop does not just go on.
    #[cold]
    fn step(&mut self) {
        if let Some(frame) = self.frames.last_mut() {
            frame.term += 1;
        }
        self.settle();
    }

    /// Goes on to the first read at or after the place that the frames name.
    fn settle(&mut self) {
        // The iteration of the outermost loop at which the walk ends, if nothing is left before it.
        let beyond = match &self.frames[..] {
            [root] if root.term == 0 => root.index,
            [root, ..] => root.index.saturating_add(1),
            [] => 0,
        };
        for _ in 0..EMPTY_STEPS {
            let depth = self.frames.len();
            let body = body(&self.nest, &self.frames);
            let size = body.len();
            let found = match self.frames.last() {
                Some(frame) if frame.index < frame.count => body.get(frame.term),
                Some(_) | None => None,
            };
            match found {
                Some(Term::Read(read)) => {
                    let indices = || self.frames.iter().map(|frame| frame.index);
                    self.next = (read.offset.at(indices()), read.len.at(indices()));
                    self.stride = (read.offset.step(0), read.len.step(0));
                    self.left = match self.frames.last() {
                        Some(frame) if size == 1 => frame.count - frame.index - 1,
                        _ => 0,
                    };
                    return;
                }
                Some(Term::Loop(inner)) => {
                    let count = count(&inner.count, &self.frames);
                    self.frames.push(Frame {
                        index: 0,
                        count,
                        term: 0,
                    });
                }
                None => {
                    let Some(frame) = self.frames.last_mut() else {
                        break;
                    };
                    if frame.index < frame.count && size > 0 {
                        frame.index += 1;
                        frame.term = 0;
                    }
                    if frame.index < frame.count && size > 0 {
                        continue;
                    }
                    if depth == 1 {
                        break;
                    }
                    self.frames.pop();
                    if let Some(outer) = self.frames.last_mut() {
                        outer.term += 1;
                    }
                }
            }
        }
        // The place is still right where the search for a read was given up inside of an iteration.
        if let Some(root) = self.frames.first_mut()
            && root.index >= beyond
        {
            root.index = beyond;
            root.term = 0;
            self.frames.truncate(1);
        }
        self.left = 0;
        self.ended = true;
    }
}

impl Iterator for Walk {
    type Item = Extent;

    #[inline]
    fn next(&mut self) -> Option<Extent> {
        let read = self.peek()?;
        self.advance();
        Some(read)
    }
}

/// The body of the loop that the frames lead into.
fn body<'a>(nest: &'a Loop, frames: &[Frame]) -> &'a [Term] {
    let mut body = &nest.body[..];
    for frame in frames.iter().take(frames.len().saturating_sub(1)) {
        body = match body.get(frame.term) {
            Some(Term::Loop(inner)) => &inner.body,
            _ => &[],
        };
    }
    body
}

/// A count inside the loops that these frames are in.
fn count(count: &Affine, frames: &[Frame]) -> u64 {
    let count = count.at(frames.iter().map(|frame| frame.index));
    count.max(0) as u64
}

/// Appends the part of a nest from one place to another, as terms that stand outside of all loops.
pub(crate) fn between(nest: &Loop, from: &[Frame], to: &[Frame], out: &mut Vec<Term>) {
    part(nest, &mut Vec::new(), from, to, out);
}

/// The part of a loop inside `outer` iterations of others, from `from` to `to`; where those are empty, from its
/// beginning and to its end.
fn part(nest: &Loop, outer: &mut Vec<u64>, from: &[Frame], to: &[Frame], out: &mut Vec<Term>) {
    let first = |frames: &[Frame]| frames.first().copied();
    let begin = first(from).map_or((0, 0), |frame| (frame.index, frame.term));
    let end = first(to).map_or_else(
        || (nest.count.at(outer.iter().copied()).max(0) as u64, 0),
        |frame| (frame.index, frame.term),
    );
    let inner_from = from.get(1..).unwrap_or(&[]);
    let inner_to = to.get(1..).unwrap_or(&[]);
    let (mut index, term) = begin;
    if index == end.0 {
        iteration(
            nest,
            outer,
            index,
            (term, inner_from),
            (end.1, inner_to),
            out,
        );
        return;
    }
    if term > 0
        || inner_from
            .iter()
            .any(|frame| frame.index > 0 || frame.term > 0)
    {
        let all = nest.body.len();
        iteration(nest, outer, index, (term, inner_from), (all, &[]), out);
        index += 1;
    }
    if index < end.0 {
        let mut whole = Loop {
            count: Affine::constant((end.0 - index) as i64),
            body: (nest.body.iter())
                .map(|term| term.resolved(1, outer))
                .collect(),
        };
        whole.shift(index as i64);
        Term::Loop(whole).settle(out);
    }
    iteration(nest, outer, end.0, (0, &[]), (end.1, inner_to), out);
}

/// The part of one iteration from a term and a place inside that term to another term and a place inside that.
fn iteration(
    nest: &Loop,
    outer: &mut Vec<u64>,
    index: u64,
    from: (usize, &[Frame]),
    to: (usize, &[Frame]),
    out: &mut Vec<Term>,
) {
    outer.push(index);
    for (number, term) in nest.body.iter().enumerate().skip(from.0) {
        let inner_from = if number == from.0 { from.1 } else { &[] };
        let inner_to = if number == to.0 { to.1 } else { &[] };
        if number > to.0 || (number == to.0 && inner_to.is_empty()) {
            break;
        }
        match term {
            Term::Loop(inner) if !inner_from.is_empty() || !inner_to.is_empty() => {
                part(inner, outer, inner_from, inner_to, out);
            }
            whole => whole.resolved(0, outer).settle(out),
        }
    }
    outer.pop();
}

impl Trace {
    /// The reads, in order.
    pub fn expand(&self) -> impl Iterator<Item = Extent> + '_ {
        self.terms.iter().flat_map(|term| match term {
            Term::Read(_) => Reads::One(Some(single(term))),
            Term::Loop(inner) => Reads::Many(Walk::new(inner.clone())),
        })
    }
}

/// The extent of a read outside of all loops; of a loop, none.
fn single(term: &Term) -> Extent {
    match term {
        Term::Read(read) => Extent::new(read.offset.base as u64, read.len.base as u64),
        Term::Loop(_) => Extent::default(),
    }
}

/// The reads of one term.
enum Reads {
    One(Option<Extent>),
    Many(Walk),
}

impl Iterator for Reads {
    type Item = Extent;

    fn next(&mut self) -> Option<Extent> {
        match self {
            Self::One(read) => read.take(),
            Self::Many(walk) => walk.next(),
        }
    }
}
