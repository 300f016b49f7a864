//! The recogniser: reads in, nested loops out, while the program runs or over a record.
//!
//! The kind is nested loop recognition (Ketterlin and Clauss, CGO 2008): terms lie on a stack, and where three groups
//! of terms on top of it are iterations of one loop ([`fold`](super::fold)), the loop takes their place. Differences:
//!
//! - The newest loop is not on the stack. A [`Walk`] follows it and has the next expected read; an expected read costs a comparison and two
//!   additions. At the first other read, the followed part is put onto the stack in the form of terms.
//! - A loop that has just been recognised is compared with the terms below. Where those say how it will go on, in
//!   which number of iterations and after which terms the same loop came before, the enclosing loop is assumed
//!   before its iteration is over: rows and planes are predicted from the second or third on.
//! - Terms before a loop are taken into it if they are earlier iterations of the loop, or the end of one.
//! - A walk that one strange read interrupts is taken up again if its expected read comes soon.
//! - Reads that no loop predicts go to a Markov chain of strides ([`Markov`]).
//!
//! Invariant: the terms that have left the stack, the stack, and the path of the walk expand to exactly the reads pushed. A wrong
//! assumption costs a wrong expectation, never a wrong trace.
//!
//! Time is linear: each read is compared with at most [`Limits::group`] places. Memory is bounded: the stack holds
//! at most twice [`Limits::window`] terms; the oldest leave it.

use std::sync::Arc;

use foreread_plan::Extent;

use super::fold::{before, merge, rotated};
use super::markov::Markov;
use super::pattern::{Affine, Loop, Term, Trace};
use super::walk::{Frame, Frames, Walk, between};

/// After this many reads without a pattern the recogniser is back in its initial state.
const RANDOM_AFTER: u32 = 64;
/// Terms that an iteration may have in that state for its loop to be recognised. Looking for sixteen takes 15 ns a read,
/// for four 4 ns. With the first loop the whole search begins again.
const GROUP_AT_RANDOM: usize = 4;
/// Reads after which an interrupted walk is given up.
const PATIENCE: u32 = 16;

/// The limits of a [`Builder`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Terms an iteration may have, at most.
    pub group: usize,
    /// Terms kept to be compared with; more than three times `group`.
    pub window: usize,
    /// Number of terms leaving the stack that are kept for [`Builder::finish`]; later ones are lost.
    pub keep: usize,
}

impl Limits {
    /// For a program that runs: at most 10 KiB of terms. Sixteen terms an iteration let eight cursors with two reads each
    /// be recognised, at 2 ns a random read and term.
    pub const ONLINE: Self = Self {
        group: 16,
        window: 64,
        keep: 0,
    };
    /// For a record: all is kept.
    pub const OFFLINE: Self = Self {
        group: 64,
        window: 1024,
        keep: usize::MAX,
    };
}

/// How far the search for a pattern is (the paper, section V.A).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recognition {
    /// No pattern is in sight.
    Initial,
    /// Reads are being compared.
    Learning,
    /// There is a pattern, and the program follows it.
    Stable,
}

/// A nest that is followed.
#[derive(Clone, Debug)]
struct Follow {
    /// Where following began; empty for the nest's beginning.
    from: Frames,
    walk: Walk,
    /// Reads predicted correctly since.
    right: u64,
}

/// A nest that was followed until a strange read came.
#[derive(Clone, Debug)]
struct Interrupted {
    walk: Walk,
    /// Reads that have come since.
    age: u32,
}

/// The recogniser of one series of reads.
#[derive(Clone, Debug)]
pub struct Builder {
    limits: Limits,
    /// Terms that have left the stack.
    left: Vec<Term>,
    /// How many of them were not kept.
    lost: u64,
    stack: Vec<Term>,
    /// [`Term::head`] of each term on the stack.
    heads: Vec<i64>,
    follow: Option<Follow>,
    interrupted: Option<Interrupted>,
    markov: Markov,
    /// Reads in a row that no loop predicted.
    strays: u32,
    confirmed: u64,
    epoch: u64,
}

impl Builder {
    /// A recogniser that has seen nothing.
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            left: Vec::new(),
            lost: 0,
            stack: Vec::new(),
            heads: Vec::new(),
            follow: None,
            interrupted: None,
            markov: Markov::default(),
            strays: 0,
            confirmed: 0,
            epoch: 0,
        }
    }

    /// The next read.
    #[inline]
    pub fn push(&mut self, read: Extent) {
        if let Some(follow) = &mut self.follow
            && follow.walk.expects(read)
        {
            follow.walk.advance();
            follow.right += 1;
            self.confirmed += 1;
            return;
        }
        self.stray(read);
    }

    /// How far the search is.
    pub fn state(&self) -> Recognition {
        if self.follow.is_some() || self.markov.predicts() {
            Recognition::Stable
        } else if self.strays == 0 || self.strays > RANDOM_AFTER {
            Recognition::Initial
        } else {
            Recognition::Learning
        }
    }

    /// The reads expected next, in order; none unless a pattern is followed, or strides follow each other as they did.
    pub fn ahead(&self) -> Ahead {
        match &self.follow {
            Some(follow) => Ahead(Predicted::Nest(follow.walk.clone())),
            None => Ahead(Predicted::Chain(self.markov.ahead().into_iter())),
        }
    }

    /// The nest that is followed.
    pub fn nest(&self) -> Option<&Loop> {
        Some(self.follow.as_ref()?.walk.nest())
    }

    /// Reads predicted correctly since the last wrong expectation.
    pub fn confirmed(&self) -> u64 {
        self.confirmed
    }

    /// Changes with each change of the expectation other than an advance: an earlier [`Ahead`] is void then.
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// True if the latest reads have had no pattern at all.
    pub fn is_random(&self) -> bool {
        self.follow.is_none() && self.strays > RANDOM_AFTER
    }

    /// Terms that were not kept: without any, [`Builder::finish`] has all that was read.
    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// All reads, as terms, except those that were [`lost`](Builder::lost).
    pub fn finish(mut self) -> Trace {
        while let Some(follow) = self.follow.take() {
            self.leave(&follow);
            self.fold();
        }
        let mut terms = self.left;
        terms.append(&mut self.stack);
        Trace { terms }
    }

    /// A read that is not the expected one.
    #[cold]
    fn stray(&mut self, read: Extent) {
        while let Some(mut follow) = self.follow.take() {
            // The loop on top may turn out to be the last iteration of another, which expects this read.
            if follow.walk.expects(read) {
                follow.walk.advance();
                self.follow = Some(follow);
                return;
            }
            self.leave(&follow);
            self.confirmed = 0;
            self.epoch += 1;
            self.markov.part();
            if follow.right > 0 {
                let walk = follow.walk;
                self.interrupted = Some(Interrupted { walk, age: 0 });
            }
            self.fold();
        }
        if let Some(follow) = self.taken_up(read).or_else(|| self.gone_on(read)) {
            self.start(follow);
            return;
        }
        self.strays = self.strays.saturating_add(1);
        let predicted = self.markov.push(read);
        self.confirmed = if predicted { self.confirmed + 1 } else { 0 };
        self.epoch += u64::from(!predicted);
        self.put(Term::read(read));
        self.fold();
    }

    /// Begins to follow.
    fn start(&mut self, follow: Follow) {
        self.follow = Some(follow);
        self.strays = 0;
        self.epoch += 1;
        self.markov.part();
    }

    /// The walk that was interrupted, if it expects this read.
    fn taken_up(&mut self, read: Extent) -> Option<Follow> {
        let interrupted = self.interrupted.as_mut()?;
        interrupted.age += 1;
        if interrupted.age > PATIENCE {
            self.interrupted = None;
            return None;
        }
        if !interrupted.walk.expects(read) {
            return None;
        }
        let mut walk = self.interrupted.take()?.walk;
        let from = walk.frames().clone();
        walk.advance();
        let right = 1;
        Some(Follow { from, walk, right })
    }

    /// The loop on top of the stack, if this read continues it.
    fn gone_on(&mut self, read: Extent) -> Option<Follow> {
        let Some(Term::Loop(top)) = self.stack.last() else {
            return None;
        };
        let count = top.count.base.max(0) as u64;
        if top.begins(count) != read.offset as i64 {
            return None;
        }
        let mut walk = Walk::endless(Arc::new(top.clone()), count);
        if !walk.expects(read) {
            return None;
        }
        self.drop(1);
        walk.advance();
        let from = Frames::new();
        Some(Follow {
            from,
            walk,
            right: 0,
        })
    }

    /// Puts the followed part onto the stack.
    fn leave(&mut self, follow: &Follow) {
        let mut terms = Vec::new();
        between(
            follow.walk.nest(),
            &follow.from,
            follow.walk.frames(),
            &mut terms,
        );
        for term in terms {
            self.put(term);
        }
    }

    fn put(&mut self, term: Term) {
        if self.stack.len() >= 2 * self.limits.window {
            self.heads.drain(..self.limits.window);
            let leaving = self.stack.drain(..self.limits.window);
            let room = self.limits.keep.saturating_sub(self.left.len());
            self.lost += self.limits.window.saturating_sub(room) as u64;
            self.left.extend(leaving.take(room));
        }
        self.heads.push(term.head());
        self.stack.push(term);
    }

    /// Takes the uppermost terms from the stack.
    fn drop(&mut self, terms: usize) {
        let rest = self.stack.len() - terms;
        self.stack.truncate(rest);
        self.heads.truncate(rest);
    }

    /// Looks whether the uppermost terms are three iterations of a loop, and follows that.
    fn fold(&mut self) {
        let size = self.stack.len();
        let most = match self.strays {
            ..=RANDOM_AFTER => self.limits.group,
            _ => GROUP_AT_RANDOM,
        };
        for group in 1..=most.min(size / 3) {
            if !in_line(&self.heads, group) {
                continue;
            }
            let [third, second, first] = [1, 2, 3].map(|back| size - back * group);
            let [a, b, c] = [first, second, third].map(|at| &self.stack[at..at + group]);
            let Some(body) = merge(a, b, Some(c), false) else {
                continue;
            };
            self.drop(3 * group);
            let count = Affine::constant(3);
            let root = Frame {
                index: 3,
                count: u64::MAX,
                term: 0,
            };
            self.recognised(Loop { count, body }, Frames::from_slice(&[root]));
            return;
        }
    }

    /// Follows a loop that was recognised, from this place on.
    fn recognised(&mut self, mut nest: Loop, mut frames: Frames) {
        loop {
            self.absorb(&mut nest, &mut frames);
            match self.enclosed(&nest, &frames) {
                Some((outer, place)) => (nest, frames) = (outer, place),
                None => break,
            }
        }
        let walk = Walk::within(Arc::new(nest), frames);
        let from = Frames::new();
        self.start(Follow {
            from,
            walk,
            right: 0,
        });
    }

    /// Takes the terms before a loop into it if they are its earlier iterations.
    fn absorb(&mut self, nest: &mut Loop, frames: &mut Frames) {
        let found = before(nest, &self.stack);
        self.drop(found.terms);
        nest.shift(-(found.iterations as i64));
        let size = nest.body.len();
        let Some(root) = frames.first_mut() else {
            return;
        };
        root.index += found.iterations;
        if found.rest == 0 {
            return;
        }
        rotated(nest, found.rest);
        root.term += found.rest;
        if root.term >= size {
            root.term -= size;
            root.index += 1;
        }
    }

    /// The loop whose iteration this one is part of, if the terms below say so, and the place in it.
    fn enclosed(&mut self, nest: &Loop, frames: &Frames) -> Option<(Loop, Frames)> {
        let top = Term::Loop(nest.clone());
        let head = top.head();
        let size = self.stack.len();
        for group in 1..=self.limits.group {
            // Where the same loop was in the iteration before, and in the one before that.
            let Some(before) = size.checked_sub(group) else {
                break;
            };
            let Term::Loop(_) = &self.stack[before] else {
                continue;
            };
            let step = head.wrapping_sub(self.heads[before]);
            let third = before.checked_sub(group).filter(|at| {
                self.heads[before].wrapping_sub(self.heads[*at]) == step && *at + 1 >= group
            });
            // The terms between those loops, of which the heads tell most quickly whether they are in line.
            let others = |at: usize| &self.heads[at + 1 - group..at];
            let third =
                third.filter(|at| even(others(*at), others(before), &self.heads[before + 1..]));
            if let Some(at) = third {
                let first = at + 1 - group;
                let mut last = self.stack[before + 1..].to_vec();
                last.push(top.clone());
                let [a, b] = [first, first + group].map(|at| &self.stack[at..at + group]);
                if let Some(body) = merge(a, b, Some(&last), true)
                    && let Some(place) = inside(&body, frames, 2, group - 1)
                {
                    self.drop(3 * group - 1);
                    return Some((enclosing(body, 3), place));
                }
            }
            // In the second iteration the other terms are assumed to change as this one has: not at all, or it is the only one.
            if group > 1 && step != 0 {
                continue;
            }
            let [a, b] = [&self.stack[before], &top].map(std::slice::from_ref);
            let Some(mut body) = merge(a, b, None, true) else {
                continue;
            };
            let again = body[0] == self.stack[before];
            body.extend_from_slice(&self.stack[before + 1..]);
            if (group == 1 || again)
                && let Some(place) = inside(&body, frames, 1, 0)
            {
                self.drop(group);
                return Some((enclosing(body, 2), place));
            }
        }
        None
    }
}

/// True if the last terms, by their heads, can be three groups of which each changes as much as the previous one.
#[inline]
fn in_line(heads: &[i64], group: usize) -> bool {
    let Some(start) = heads.len().checked_sub(3 * group) else {
        return false;
    };
    let (first, rest) = heads[start..].split_at(group);
    let (second, third) = rest.split_at(group);
    even(first, second, third)
}

/// True if all numbers change as much from the first to the second as from the second to the third; the last ones first.
#[inline]
fn even(first: &[i64], second: &[i64], third: &[i64]) -> bool {
    let all = first.iter().zip(second).zip(third);
    all.rev()
        .all(|((a, b), c)| b.wrapping_sub(*a) == c.wrapping_sub(*b))
}

/// A loop with this body.
fn enclosing(body: Vec<Term>, count: i64) -> Loop {
    let count = Affine::constant(count);
    Loop { count, body }
}

/// The place in a loop with this body where term `term` of iteration `index` is a loop that is at `frames`; none if that
/// loop has no such place.
fn inside(body: &[Term], frames: &Frames, index: u64, term: usize) -> Option<Frames> {
    let Some(Term::Loop(inner)) = body.get(term) else {
        return None;
    };
    let count = inner.count.at(std::iter::once(index)).max(0) as u64;
    let mut inner = frames.clone();
    let root = inner.first_mut()?;
    root.count = count;
    let root = *root;
    let mut place = Frames::from_slice(&[Frame {
        index,
        count: u64::MAX,
        term,
    }]);
    if root.index > count || (root.index == count && (root.term > 0 || inner.len() > 1)) {
        return None;
    }
    if root.index < count {
        place.extend(inner);
    } else if let Some(outer) = place.first_mut() {
        outer.term += 1;
        if outer.term == body.len() {
            *outer = Frame {
                index: index + 1,
                count: u64::MAX,
                term: 0,
            };
        }
    }
    Some(place)
}

/// The reads expected next, in order. It does not end by itself where the outermost loop's end is not known, but with
/// the first read that no file can have.
#[derive(Clone, Debug)]
pub struct Ahead(Predicted);

#[derive(Clone, Debug)]
enum Predicted {
    Nest(Walk),
    Chain(std::vec::IntoIter<Extent>),
}

impl Iterator for Ahead {
    type Item = Extent;

    fn next(&mut self) -> Option<Extent> {
        match &mut self.0 {
            Predicted::Nest(walk) => {
                let read = walk.peek()?;
                let fits = |number: u64| i64::try_from(number).is_ok();
                if !fits(read.offset) || !fits(read.len) {
                    return None;
                }
                walk.advance();
                Some(read)
            }
            Predicted::Chain(reads) => reads.next(),
        }
    }
}
