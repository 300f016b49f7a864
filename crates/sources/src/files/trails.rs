//! Trails: what came next the last time, after the same last 24, 12 or 6 events.
//!
//! A partition grows by one node an instance, so that after three runs a pattern is four events long. Programs begin alike: a linker
//! that is started 39 times opens the same 14 files each time, and then its own. No pattern that is shorter than such
//! a beginning says which of the 39 it is. The last two dozen events do, after a single run: they reach back to before the
//! beginning. Their hash is enough to tell them from others.
//!
//! The lengths are in geometric progression, as in predictors of branches: the longest that is known is believed.
//!
//! Invariant: as many trails as the limit says; an event costs one look-up for each length.

use std::collections::VecDeque;

use super::Symbol;
use super::contexts::Bounded;

/// Events of a trail, the longest first.
const LENGTHS: [usize; 3] = [24, 12, 6];
/// Events that are needed of a sequence.
pub(super) const MEMORY: usize = LENGTHS[0];
/// Times that are counted, at most; then both counts are halved, so that the last times count most.
const TIMES: u8 = 15;

/// What followed a trail.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Step {
    next: Symbol,
    /// Times that it came again, and that something else did.
    right: u8,
    wrong: u8,
}

impl Step {
    fn new(next: Symbol) -> Self {
        Self {
            next,
            right: 0,
            wrong: 0,
        }
    }

    fn see(&mut self, symbol: Symbol) {
        if symbol == self.next {
            self.right += 1;
        } else if self.wrong >= self.right {
            // It goes another way now.
            *self = Self::new(symbol);
            return;
        } else {
            self.wrong += 1;
        }
        if self.right.max(self.wrong) > TIMES {
            (self.right, self.wrong) = (self.right / 2, self.wrong / 2);
        }
    }

    /// The one time before they were counted is a right one.
    fn likelihood(self) -> f64 {
        let right = f64::from(self.right) + 1.0;
        right / (right + f64::from(self.wrong))
    }
}

/// All of them.
#[derive(Clone, Debug)]
pub(super) struct Trails(Bounded<u64, Step>);

impl Trails {
    /// At most so many.
    pub(super) fn new(limit: usize) -> Self {
        Self(Bounded::new(limit))
    }

    /// After these events, the oldest first, came this one.
    pub(super) fn see(&mut self, before: &VecDeque<Symbol>, symbol: Symbol) {
        for length in LENGTHS {
            let Some(key) = key(length, before.len(), |at| before[at]) else {
                continue;
            };
            match self.0.used(key) {
                Some(step) => step.see(symbol),
                None => self.0.insert(key, Step::new(symbol), |_, _| {}),
            }
        }
    }

    /// What comes after so many events, and how likely.
    pub(super) fn next(
        &self,
        count: usize,
        event: impl Fn(usize) -> Symbol,
    ) -> Option<(Symbol, f64)> {
        let known = |length| self.0.get(key(length, count, &event)?);
        let step = LENGTHS.into_iter().find_map(known)?;
        Some((step.next, step.likelihood()))
    }

    pub(super) fn bytes(&self) -> usize {
        self.0.len() * size_of::<(u64, u64, Step)>()
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }
}

/// The key of the last `length` of `count` events.
fn key(length: usize, count: usize, event: impl Fn(usize) -> Symbol) -> Option<u64> {
    // An odd number near 2^64 divided by the golden ratio, by which the bits of a product are spread.
    const SPREAD: u64 = 0x9e37_79b9_7f4a_7c15;
    let from = count.checked_sub(length)?;
    let add = |hash: u64, at| (hash.rotate_left(23) ^ u64::from(event(at).0)).wrapping_mul(SPREAD);
    Some((from..count).fold(length as u64, add))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn learn(trails: &mut Trails, events: &[u32]) {
        for (at, symbol) in events.iter().enumerate() {
            let before = events[at.saturating_sub(MEMORY)..at].iter();
            trails.see(&before.copied().map(Symbol).collect(), Symbol(*symbol));
        }
    }

    fn next(trails: &Trails, events: &[u32]) -> Option<(Symbol, f64)> {
        trails.next(events.len(), |at| Symbol(events[at]))
    }

    #[test]
    fn of_two_trails_that_end_alike_the_longer_one_tells() {
        let beginning = 100..110;
        let run = |number: u32| [number].into_iter().chain(beginning.clone());
        let mut trails = Trails::new(1000);
        let events: Vec<u32> = (1..9).flat_map(|n| run(n).chain([n + 50])).collect();
        learn(&mut trails, &events);
        for n in 1..9 {
            let events: Vec<u32> = run(n).chain([]).collect();
            assert_eq!(events.len(), 11, "shorter than the second length");
            let before: Vec<u32> = match n {
                1 => continue,
                _ => [n - 1 + 50].into_iter().chain(events).collect(),
            };
            assert_eq!(next(&trails, &before), Some((Symbol(n + 50), 1.0)), "{n}");
        }
    }

    #[test]
    fn what_goes_another_way_is_less_likely_and_then_forgotten() {
        let mut step = Step::new(Symbol(1));
        assert_eq!(step.likelihood(), 1.0);
        for _ in 0..100 {
            step.see(Symbol(1));
        }
        step.see(Symbol(2));
        assert!(step.likelihood() > 0.8 && step.next == Symbol(1));
        for _ in 0..20 {
            step.see(Symbol(2));
        }
        assert_eq!((step.next, step.likelihood()), (Symbol(2), 1.0));
    }

    proptest! {
        #[test]
        fn trails_are_bounded_and_a_repetition_is_known(events in proptest::collection::vec(any::<u32>(), 30..200)) {
            let mut trails = Trails::new(64);
            learn(&mut trails, &events);
            prop_assert!(trails.len() <= 64);
            let mut trails = Trails::new(10_000);
            learn(&mut trails, &events);
            let at = events.len() - 1;
            let last = Symbol(events[at]);
            prop_assert_eq!(next(&trails, &events[..at]).map(|one| one.0), Some(last));
        }
    }
}
